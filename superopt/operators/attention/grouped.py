"""Attention in which several heads of queries share keys and values (Ainslie and others 2023, arXiv 2305.13245)."""

from __future__ import annotations

from superopt.arithmetic.carrier import Array, Carrier
from superopt.demands import require
from superopt.dim import Shape
from superopt.operators.attention.dot_product import Attending, Attention, MaskedAttention
from superopt.operators.attributes import attr
from superopt.operators.declare import operator
from superopt.operators.layout import Expand, reshaped
from superopt.relations import divides
from superopt.term import Term


class Grouped(Attending):
    """Base of attention with and without a mask, over `batch heads rows width`, with fewer heads of keys and values."""

    def fitted(self, q: Shape, k: Shape, v: Shape, *mask: Shape) -> Shape:
        """A row of values for each row of queries; the heads fall into as many groups as keys and values have."""
        require(len(q) == len(k) == len(v) == 4, f"{self.name}: four axes are expected, not {q}, {k}, {v}")
        require(q[0] == k[0], f"{self.name}: batches differ: {q} and {k}")
        require(q[3] == k[3], f"{self.name}: widths differ: queries are {q}, keys {k}")
        for a, b in zip(k[:3], v[:3], strict=True):
            require(a == b, f"{self.name}: keys are {k}, values {v}")
        require(divides(k[1], q[1]), f"{self.name}: {q[1]} heads do not fall into {k[1]} groups")
        return self.masked(q, k, v, *mask)


@operator("grouped_attention", onnx="Attention")
class GroupedAttention(Grouped):
    """`y = softmax(scale · q · kᵀ) · v`, each head of keys and values for several of queries."""

    scale: float = attr(default=1.0)

    def shape(self, q: Shape, k: Shape, v: Shape) -> Shape:  # type: ignore[override]
        """A row of values for each row of queries."""
        return self.fitted(q, k, v)

    def eval(self, ring: Carrier, q: Array, k: Array, v: Array) -> Array:  # type: ignore[override]
        """The value of the definition."""
        return super().eval(ring, q, k, v)

    def definition(self, *inputs: Term) -> Term:
        """What attention means, with keys and values repeated."""
        q, k, v = inputs
        return Attention(self.scale).definition(q, for_each_head(k, q), for_each_head(v, q))


@operator("masked_grouped_attention", onnx="Attention")
class MaskedGroupedAttention(Grouped):
    """`y = softmax(scale · q · kᵀ + mask) · v`, likewise; the mask is that of `masked_attention`."""

    stacks = (3,)
    scale: float = attr(default=1.0)

    def shape(self, q: Shape, k: Shape, v: Shape, mask: Shape) -> Shape:  # type: ignore[override]
        """A row of values for each row of queries."""
        return self.fitted(q, k, v, mask)

    def eval(self, ring: Carrier, q: Array, k: Array, v: Array, mask: Array) -> Array:  # type: ignore[override]
        """The value of the definition."""
        return super().eval(ring, q, k, v, mask)

    def definition(self, *inputs: Term) -> Term:
        """What attention means, with keys and values repeated."""
        q, k, v, mask = inputs
        return MaskedAttention(self.scale).definition(q, for_each_head(k, q), for_each_head(v, q), mask)


def for_each_head(x: Term, q: Term) -> Term:
    """Keys or values that several heads share, for each of these."""
    n, shared, rows, width = x.shape
    wide = Expand((0, 1, 3, 4), (n, shared, q.shape[1] // shared, rows, width))(x)
    return reshaped(wide, (n, q.shape[1], rows, width))
