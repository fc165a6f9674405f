"""Attention over rows of all batches below each other, in which heads stand side by side.

So exporters write it whose linear layers are products of two matrices, as those of TensorFlow and Flax do.
"""

from __future__ import annotations

from superopt.arithmetic.carrier import Array, Carrier
from superopt.demands import require
from superopt.dim import Dim, Shape
from superopt.operators.attention.dot_product import Attention, MaskedAttention
from superopt.operators.attention.heads import AttentionOfRows, MaskedAttentionOfRows
from superopt.operators.attention.nodes import attention
from superopt.operators.attributes import attr
from superopt.operators.composite import Composite
from superopt.operators.declare import operator, reads
from superopt.operators.layout import Transpose, reshaped
from superopt.operators.meanings import defines
from superopt.operators.nodes import Emitter
from superopt.relations import divides
from superopt.term import Term


class OfFlatRows(Composite):
    """Base of attention with and without a mask, over `batch·rows heads·width`."""

    heads: Dim
    batch: Dim
    scale: float

    def fitted(self, q: Shape, k: Shape, v: Shape) -> Shape:
        """A row of values for each row of queries; all fall into batches and heads."""
        require(len(q) == len(k) == len(v) == 2, f"{self.name}: two axes are expected, not {q}, {k}, {v}")
        require(q[1] == k[1], f"{self.name}: widths differ: queries are {q}, keys {k}")
        require(k[0] == v[0], f"{self.name}: keys are {k}, values {v}")
        for given in (q, v):
            require(divides(self.batch, given[0]), f"{self.name}: {given} does not fall into {self.batch} batches")
            require(divides(self.heads, given[1]), f"{self.name}: {given} does not fall into {self.heads} heads")
        return q[0], v[1]

    def flops(self, result: Shape, *shapes: Shape) -> Dim:
        """Two matrix products."""
        (s, d), (t, _) = shapes[0], shapes[1]
        return 2 * s * (t // self.batch) * (d + result[1])

    def to_onnx(self, out: Emitter, *inputs: str) -> str:
        """ONNX's Attention over three axes, since opset 23, between reshapes."""
        rows, mask = inputs[:3], inputs[3:]
        widths = [out.shape(name)[1] for name in rows]
        shapes = (out.integers((self.batch, -1, width)) for width in widths)
        stacked = [out.node("Reshape", given) for given in zip(rows, shapes, strict=True)]
        heads = {"q_num_heads": self.heads, "kv_num_heads": self.heads, "scale": self.scale}
        attended = out.node("Attention", (*stacked, *mask), heads)
        return out.node("Reshape", (attended, out.integers((-1, widths[2]))))

    def stacked(self, x: Term) -> Term:
        """From `batch·rows heads·width` to `batch heads rows width`."""
        rows, width = x.shape
        return Transpose((0, 2, 1, 3))(reshaped(x, (self.batch, rows // self.batch, self.heads, width // self.heads)))

    def flat(self, y: Term) -> Term:
        """And back."""
        batch, heads, rows, width = y.shape
        return reshaped(Transpose((0, 2, 1, 3))(y), (batch * rows, heads * width))


@operator("attention_of_flat_rows", onnx="Attention")
class AttentionOfFlatRows(OfFlatRows):
    """`attention_of_rows` of as many batches as given, whose rows stand below each other."""

    heads: Dim = attr(size=True, least=1)
    batch: Dim = attr(size=True, least=1)
    scale: float = attr(default=1.0)

    def shape(self, q: Shape, k: Shape, v: Shape) -> Shape:  # type: ignore[override]
        """A row of values for each row of queries."""
        return self.fitted(q, k, v)

    def eval(self, ring: Carrier, q: Array, k: Array, v: Array) -> Array:  # type: ignore[override]
        """The value of the definition."""
        return super().eval(ring, q, k, v)

    def definition(self, *inputs: Term) -> Term:
        """Batches and heads on axes of their own, and back."""
        return self.flat(Attention(self.scale)(*map(self.stacked, inputs)))


@operator("masked_attention_of_flat_rows", onnx="Attention")
class MaskedAttentionOfFlatRows(OfFlatRows):
    """`masked_attention_of_rows` of as many batches as given, whose rows stand below each other."""

    stacks = (3,)
    heads: Dim = attr(size=True, least=1)
    batch: Dim = attr(size=True, least=1)
    scale: float = attr(default=1.0)

    def shape(self, q: Shape, k: Shape, v: Shape, mask: Shape) -> Shape:  # type: ignore[override]
        """A row of values for each row of queries."""
        require(len(mask) == 4, f"{self.name}: the mask {mask} has not four axes")
        rows = (q[0] // self.batch, k[0] // self.batch)
        for d, wanted in zip(mask, (self.batch, self.heads, *rows), strict=True):
            require(d == wanted, f"{self.name}: the mask {mask} does not fit {q} and {k}")
        return self.fitted(q, k, v)

    def eval(self, ring: Carrier, q: Array, k: Array, v: Array, mask: Array) -> Array:  # type: ignore[override]
        """The value of the definition."""
        return super().eval(ring, q, k, v, mask)

    def definition(self, *inputs: Term) -> Term:
        """Batches and heads on axes of their own, and back."""
        *rows, mask = inputs
        return self.flat(MaskedAttention(self.scale)(*map(self.stacked, rows), mask))


@defines("attention_of_flat_rows", "by batches")
def by_batches(op: AttentionOfFlatRows, *inputs: Term) -> Term:
    """With batches on an axis of their own: reshapes that other operators may take in."""
    return _flat(AttentionOfRows(op.heads, op.scale)(*(_stacked(op, x) for x in inputs)))


@defines("masked_attention_of_flat_rows", "by batches")
def masked_by_batches(op: MaskedAttentionOfFlatRows, *inputs: Term) -> Term:
    """Likewise."""
    *rows, mask = inputs
    return _flat(MaskedAttentionOfRows(op.heads, op.scale)(*(_stacked(op, x) for x in rows), mask))


def _stacked(op: OfFlatRows, x: Term) -> Term:
    return reshaped(x, (op.batch, x.shape[0] // op.batch, x.shape[1]))


def _flat(y: Term) -> Term:
    return reshaped(y, (y.shape[0] * y.shape[1], y.shape[2]))


reads("Attention")(attention)  # the node itself is read as what it is between the reshapes
