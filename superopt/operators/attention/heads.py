"""Attention over rows in which the heads stand side by side: the operator of ONNX takes them apart and joins them."""

from __future__ import annotations

from superopt.arithmetic.carrier import Array, Carrier
from superopt.demands import require
from superopt.dim import Dim, Shape
from superopt.operators.attention.dot_product import Attention, MaskedAttention
from superopt.operators.attributes import attr
from superopt.operators.composite import Composite
from superopt.operators.declare import operator
from superopt.operators.layout import Transpose, reshaped
from superopt.operators.nodes import Emitter
from superopt.relations import divides
from superopt.term import Term


class OfRows(Composite):
    """Base of attention with and without a mask, over `batch rows heads·width`."""

    heads: Dim
    scale: float

    def fitted(self, q: Shape, k: Shape, v: Shape) -> Shape:
        """A row of values for each row of queries; queries, keys and values fall into the heads."""
        require(len(q) == len(k) == len(v) == 3, f"{self.name}: three axes are expected, not {q}, {k}, {v}")
        require(q[0] == k[0], f"{self.name}: batches differ: {q} and {k}")
        require(q[0] == v[0], f"{self.name}: batches differ: {q} and {v}")
        require(q[2] == k[2], f"{self.name}: widths differ: queries are {q}, keys {k}")
        require(k[1] == v[1], f"{self.name}: keys are {k}, values {v}")
        for given in (q, v):
            require(divides(self.heads, given[2]), f"{self.name}: {given} does not fall into {self.heads} heads")
        return (*q[:2], v[2])

    def flops(self, result: Shape, *shapes: Shape) -> Dim:
        """Two matrix products."""
        (b, s, d), (_, t, _) = shapes[0], shapes[1]
        return 2 * b * s * t * (d + result[2])

    def to_onnx(self, out: Emitter, *inputs: str) -> str:
        """Since opset 23, with the counts of heads."""
        given = {"q_num_heads": self.heads, "kv_num_heads": self.heads, "scale": self.scale}
        return out.node("Attention", inputs, given)


@operator("attention_of_rows", onnx="Attention")
class AttentionOfRows(OfRows):
    """`y = softmax(scale · q · kᵀ) · v` for each head, of rows in which heads stand side by side."""

    heads: Dim = attr(size=True, least=1)
    scale: float = attr(default=1.0)

    def shape(self, q: Shape, k: Shape, v: Shape) -> Shape:  # type: ignore[override]
        """A row of values for each row of queries."""
        return self.fitted(q, k, v)

    def eval(self, ring: Carrier, q: Array, k: Array, v: Array) -> Array:  # type: ignore[override]
        """The value of the definition."""
        return super().eval(ring, q, k, v)

    def definition(self, *inputs: Term) -> Term:
        """Heads on an axis of their own, and back."""
        return joined(Attention(self.scale)(*(apart(x, self.heads) for x in inputs)))


@operator("masked_attention_of_rows", onnx="Attention")
class MaskedAttentionOfRows(OfRows):
    """`y = softmax(scale · q · kᵀ + mask) · v` for each head; the mask is that of `masked_attention`."""

    stacks = (3,)
    heads: Dim = attr(size=True, least=1)
    scale: float = attr(default=1.0)

    def shape(self, q: Shape, k: Shape, v: Shape, mask: Shape) -> Shape:  # type: ignore[override]
        """A row of values for each row of queries."""
        require(len(mask) == 4, f"{self.name}: the mask {mask} has not four axes")
        for d, wanted in zip(mask, (q[0], self.heads, q[1], k[1]), strict=True):
            require(d == wanted, f"{self.name}: the mask {mask} does not fit {q} and {k}")
        return self.fitted(q, k, v)

    def eval(self, ring: Carrier, q: Array, k: Array, v: Array, mask: Array) -> Array:  # type: ignore[override]
        """The value of the definition."""
        return super().eval(ring, q, k, v, mask)

    def definition(self, *inputs: Term) -> Term:
        """Heads on an axis of their own, and back."""
        *rows, mask = inputs
        return joined(MaskedAttention(self.scale)(*(apart(x, self.heads) for x in rows), mask))


def apart(x: Term, heads: Dim) -> Term:
    """From `batch rows heads·width` to `batch heads rows width`."""
    n, rows, width = x.shape
    return Transpose((0, 2, 1, 3))(reshaped(x, (n, rows, heads, width // heads)))


def joined(y: Term) -> Term:
    """Heads side by side again."""
    n, heads, rows, width = y.shape
    return reshaped(Transpose((0, 2, 1, 3))(y), (n, rows, heads * width))
