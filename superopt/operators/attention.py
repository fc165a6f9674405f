"""Scaled dot-product attention as ONNX has it since opset 23, after Vaswani and others (2017, arXiv 1706.03762)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from superopt.arithmetic import Array, Carrier
from superopt.dim import Dim, Shape, equal, require
from superopt.operators.activations import times
from superopt.operators.composite import Composite
from superopt.operators.constant import Band, filled
from superopt.operators.declare import Emitter, NotUnderstood, Source, attr, concrete, operator, pass_over, reads
from superopt.operators.functions import Tanh
from superopt.operators.layout import Concat, Expand, Slice, Transpose, reshaped, spread
from superopt.operators.linear import MatMul
from superopt.operators.logic import Cast, Less, Where
from superopt.operators.normalize import Softmax
from superopt.operators.pointwise import Add
from superopt.operators.rearrange import repeated
from superopt.operators.reductions import Largest
from superopt.term import REAL, TRUTH, Term, Type, join_dtypes, make


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
        for given in mask:
            require(len(given) == 4, f"{self.name}: the mask {given} has not four axes")
            for d, wanted in zip(given, (*q[:3], k[2]), strict=True):
                require(d == wanted, f"{self.name}: the mask {given} does not fit {q} and {k}")
        return (*q[:3], v[3])

    def flops(self, result: Shape, *shapes: Shape) -> Dim:
        """Two matrix products."""
        (b, h, s, d), (_, _, t, _) = shapes[0], shapes[1]
        return 2 * b * h * s * t * (d + result[3])


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

    def to_onnx(self, out: Emitter, *inputs: str) -> str:
        """Since opset 23."""
        return out.node("Attention", inputs, {"scale": self.scale})


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


@reads("Attention")
def attention(node: Source) -> tuple[Term, ...]:
    """Heads on an axis of their own or side by side, fewer of them for keys; earlier keys and values; a mask.

    The further outputs are all keys and values. What it looks ahead at is masked by a constant.
    """
    inputs: list[Term | None] = [*node.inputs, *[None] * 6]
    (q, k, v, mask, past_k, past_v), rest, given = inputs[:6], inputs[6:], node.attributes
    if q is None or k is None or v is None or any(t is not None for t in rest):
        raise NotUnderstood("keys that are padded by counts, or other further inputs")
    pass_over(node, "qk_matmul_output_mode")  # of an output that is not declared
    if given.get("softmax_precision", 1) not in (0, 1, 11):
        raise NotUnderstood("a softmax of lower precision")
    flat = q.type.rank == 3
    if flat:
        heads, shared = int(given["q_num_heads"]), int(given["kv_num_heads"])
        q, k, v = (_by_heads(t, n) for t, n in ((q, heads), (k, shared), (v, shared)))
    past = 0 if past_k is None else past_k.shape[2]
    if past_k is not None and past_v is not None:
        k, v = Concat(2)(past_k, k), Concat(2)(past_v, v)
    scale = given.get("scale")
    scale = 1 / math.sqrt(concrete(q.shape[3:], "attention")[0]) if scale is None else float(scale)
    whole = (q, _for_each_head(k, q), _for_each_head(v, q))
    y = _attended(whole, scale, _mask(node, q, k, mask, past), float(given.get("softcap") or 0.0))
    if flat:
        y = reshaped(Transpose((0, 2, 1, 3))(y), (y.shape[0], y.shape[2], y.shape[1] * y.shape[3]))
    return y, k, v


def _attended(whole: tuple[Term, Term, Term], scale: float, mask: Term | None, cap: float) -> Term:
    """Attention of queries, keys and values; a cap bounds the scores, for which there is no operator of ours."""
    (q, k, v), truth = whole, mask is not None and mask.type.dtype == TRUTH
    if cap:
        capped = times(Tanh()(times(scores(q, k, scale), 1 / cap)), cap)
        return MatMul()(Softmax(3)(capped) if mask is None else masked_softmax(capped, mask, truth), v)
    if mask is None:
        return make(Attention(scale), whole)
    return make(MaskedAttention(scale, int(truth)), (*whole, mask))


def _by_heads(x: Term, heads: int) -> Term:
    """From `batch rows heads·width` to `batch heads rows width`."""
    n, rows, width = x.shape
    return Transpose((0, 2, 1, 3))(reshaped(x, (n, rows, heads, width // heads)))


def _for_each_head(x: Term, q: Term) -> Term:
    """Keys or values that several heads share, for each of these."""
    heads, shared = concrete((q.shape[1], x.shape[1]), "attention")
    return x if heads == shared else repeated(x, (1, heads // shared, 1, 1), within=True)


def _mask(node: Source, q: Term, k: Term, mask: Term | None, past: Dim) -> Term | None:
    to = (*q.shape[:3], k.shape[2])
    if mask is not None:
        if equal(mask.shape[-1], to[3]) is not True:
            raise NotUnderstood("a mask that is shorter than the keys")
        mask = spread(mask, to)
    if not node.attributes.get("is_causal", 0):
        return mask
    if mask is not None:
        raise NotUnderstood("a mask, and not to look ahead")
    rows, columns, before = concrete((to[2], to[3], past), "attention that does not look ahead")
    n = max(rows + before, columns)
    below = Cast(TRUTH)(Slice(1, 0, columns)(Slice(0, before, before + rows)(Band(n, n, 0)())))
    return Expand((2, 3), to)(below)
