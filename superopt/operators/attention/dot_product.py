"""Scaled dot-product attention as ONNX has it since opset 23, after Vaswani and others (2017, arXiv 1706.03762)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from superopt.arithmetic.carrier import Array, Carrier
from superopt.demands import require
from superopt.dim import Dim, Shape
from superopt.operators.activations import times
from superopt.operators.attributes import attr
from superopt.operators.comparisons import Less
from superopt.operators.composite import Composite
from superopt.operators.constant import filled
from superopt.operators.declare import operator
from superopt.operators.layout import Expand, Transpose
from superopt.operators.logic import Where
from superopt.operators.matmul import MatMul
from superopt.operators.nodes import Emitter
from superopt.operators.normalize import Softmax
from superopt.operators.pointwise import Add
from superopt.operators.reductions import Largest
from superopt.term import REAL, TRUTH, Term, Type, join_dtypes


def scores(q: Term, k: Term, scale: float) -> Term:
    """How much each row of queries has to do with each of keys: `scale · q · kᵀ`."""
    return times(MatMul()(q, Transpose((0, 1, 3, 2))(k)), scale)


class Attending(Composite):
    """Base of attention with and without a mask, over `batch heads rows width`."""

    scale: float

    def fitted(self, q: Shape, k: Shape, v: Shape, *mask: Shape) -> Shape:
        """A row of values for each row of queries; a mask has a number for each row of queries and of keys."""
        require(len(q) == len(k) == len(v) == 4, f"{self.name}: four axes are expected, not {q}, {k}, {v}")
        for a, b, c in zip(q[:2], k[:2], v[:2], strict=True):
            require(a == b, f"{self.name}: batch or heads differ: {q} and {k}")
            require(a == c, f"{self.name}: batch or heads differ: {q} and {v}")
        require(q[3] == k[3], f"{self.name}: widths differ: queries are {q}, keys {k}")
        require(k[2] == v[2], f"{self.name}: keys are {k}, values {v}")
        return self.masked(q, k, v, *mask)

    def masked(self, q: Shape, k: Shape, v: Shape, *mask: Shape) -> Shape:
        """That of the result, where masks fit queries and keys."""
        for given in mask:
            require(len(given) == 4, f"{self.name}: the mask {given} has not four axes")
            for d, wanted in zip(given, (*q[:3], k[2]), strict=True):
                require(d == wanted, f"{self.name}: the mask {given} does not fit {q} and {k}")
        return (*q[:3], v[3])

    def flops(self, result: Shape, *shapes: Shape) -> Dim:
        """Two matrix products."""
        (b, h, s, d), (_, _, t, _) = shapes[0], shapes[1]
        return 2 * b * h * s * t * (d + result[3])

    def to_onnx(self, out: Emitter, *inputs: str) -> str:
        """Since opset 23."""
        return out.node("Attention", inputs, {"scale": self.scale})


@operator("attention", onnx="Attention")
class Attention(Attending):
    """`y = softmax(scale · q · kᵀ) · v`, row by row."""

    scale: float = attr(default=1.0, onnx="scale")

    def shape(self, q: Shape, k: Shape, v: Shape) -> Shape:  # type: ignore[override]
        """A row of values for each row of queries."""
        return self.fitted(q, k, v)

    def eval(self, ring: Carrier, q: Array, k: Array, v: Array) -> Array:  # type: ignore[override]
        """The value of the definition."""
        return super().eval(ring, q, k, v)

    def definition(self, *inputs: Term) -> Term:
        """Two matrix products, a softmax between them."""
        q, k, v = inputs
        return MatMul()(Softmax(3)(scores(q, k, self.scale)), v)


@operator("masked_attention", onnx="Attention")
class MaskedAttention(Attending):
    """`y = softmax(scale · q · kᵀ + mask) · v`, row by row; a row that attends to nothing is 0.

    A mask of truth values says which scores count.
    """

    stacks = (3,)
    scale: float = attr(default=1.0, onnx="scale")
    truth: int = attr(default=0)

    def dtype(self, inputs: Sequence[Type]) -> str:
        """That of queries, keys and values; the mask has it too, or is of truth values."""
        if not self.truth:
            return join_dtypes(inputs, self.name)
        join_dtypes((inputs[3], Type(TRUTH, ())), f"{self.name}, mask")
        return join_dtypes(inputs[:3], self.name)

    def shape(self, q: Shape, k: Shape, v: Shape, mask: Shape) -> Shape:  # type: ignore[override]
        """A row of values for each row of queries."""
        return self.fitted(q, k, v, mask)

    def eval(self, ring: Carrier, q: Array, k: Array, v: Array, mask: Array) -> Array:  # type: ignore[override]
        """The value of the definition."""
        return super().eval(ring, q, k, v, mask)

    def definition(self, *inputs: Term) -> Term:
        """What does not count is made as low as can be, and cleared afterwards."""
        q, k, v, mask = inputs
        return MatMul()(masked_softmax(scores(q, k, self.scale), mask, bool(self.truth)), v)


def masked_softmax(given: Term, mask: Term, truth: bool) -> Term:
    """The shares of scores that count; 0 in a row where none does."""
    # In place of a score that does not count: less than it is minus infinity only.
    lowest = float(np.finfo("float32" if given.type.dtype == REAL else given.type.dtype).min)
    if truth:
        shares = Softmax(3)(Where()(mask, given, filled(lowest, given.shape)))
        return Where()(mask, shares, filled(0.0, given.shape))
    whole = Add()(given, mask)
    nothing = Less()(Largest((3,))(whole), filled(lowest, whole.shape[:3]))
    return Where()(Expand((0, 1, 2), whole.shape)(nothing), filled(0.0, whole.shape), Softmax(3)(whole))
