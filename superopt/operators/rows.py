"""A tensor as a matrix: ONNX's Flatten, through which runtimes move no transpose."""

from __future__ import annotations

from superopt.arithmetic.carrier import Array, Carrier
from superopt.demands import require
from superopt.dim import Shape, product
from superopt.operators.attributes import attr
from superopt.operators.declare import operator
from superopt.operators.declared import Declared
from superopt.operators.layout import positive_axis, reshaped
from superopt.operators.nodes import Source, present
from superopt.term import FACTS, Term


@operator("rows", onnx="Flatten")
class Rows(Declared):
    """`y = x` as a matrix: the axes before `axis` are its rows. Runtimes move no transpose through it."""

    enumerated = False
    keeps = frozenset(FACTS)
    of_weights = True
    linear = (0,)
    zero = True
    moves = True
    axis: int = attr(default=1, onnx="axis")

    def shape(self, x: Shape) -> Shape:  # type: ignore[override]
        """Two axes."""
        require(0 <= self.axis <= len(x), f"rows: {x} has no axis {self.axis}")
        return (product(x[: self.axis]), product(x[self.axis :]))

    def eval(self, ring: Carrier, x: Array) -> Array:  # type: ignore[override]
        """The same elements."""
        return x.reshape(self.shape(x.shape))  # type: ignore[arg-type]

    @classmethod
    def from_onnx(cls, node: Source) -> Term:
        """As a reshape, which all that moves through views knows of."""
        (x,) = present(node.inputs, 1)
        axis = positive_axis(node.attributes.get("axis", 1), x.type.rank)
        return reshaped(x, cls(axis).shape(x.shape))
