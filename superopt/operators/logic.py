"""Truth values: what makes them of each other, and Where, which chooses by them. In every carrier they are 0 and 1."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from superopt.arithmetic.carrier import Array, Carrier
from superopt.demands import require
from superopt.dim import Shape
from superopt.operators.declare import operator
from superopt.operators.layout import broadcast
from superopt.operators.nodes import Source, present
from superopt.operators.pointwise import Binary, Pointwise, Unary
from superopt.term import REAL, TRUTH, Term, Type, join_dtypes, make


class Logical(Pointwise):
    """Base of what makes truth values of truth values."""

    def dtype(self, inputs: Sequence[Type]) -> str:
        """Truth values only."""
        for type_ in inputs:
            require(type_.dtype in (TRUTH, REAL), f"{self.name}: truth values are expected, not {type_}")
        return join_dtypes(inputs, self.name)


@operator("not", onnx="Not")
class Not(Logical, Unary):
    """`y = 1 − x` of truth values."""

    def eval(self, ring: Carrier, x: Array) -> Array:  # type: ignore[override]
        """The complement."""
        return ring.add(ring.constant(1.0), ring.mul(ring.constant(-1.0), x))


@operator("and", onnx="And")
class And(Logical, Binary):
    """`z = x · y` of truth values."""

    commutative = True
    zero = True
    linear = (0, 1)

    def eval(self, ring: Carrier, x: Array, y: Array) -> Array:  # type: ignore[override]
        """The product."""
        return ring.mul(x, y)


@operator("or", onnx="Or")
class Or(Logical, Binary):
    """`z = x + y − x · y` of truth values."""

    commutative = True
    zero = True

    def eval(self, ring: Carrier, x: Array, y: Array) -> Array:  # type: ignore[override]
        """The complement of both complements' product."""
        return ring.add(ring.add(x, y), ring.mul(ring.constant(-1.0), ring.mul(x, y)))


@operator("where", onnx="Where")
class Where(Pointwise):
    """`z = x where c is 1, y where it is 0`."""

    def dtype(self, inputs: Sequence[Type]) -> str:
        """The type of what is chosen from."""
        require(inputs[0].dtype in (TRUTH, REAL), f"where: the condition is {inputs[0]}, no truth value")
        return join_dtypes(inputs[1:], self.name)

    def shape(self, c: Shape, x: Shape, y: Shape) -> Shape:  # type: ignore[override]
        """The shape of all three."""
        return super().shape(c, x, y)

    def eval(self, ring: Carrier, c: Array, x: Array, y: Array) -> Array:  # type: ignore[override]
        """`c·x + (1 − c)·y`; chosen in floating point, where what is not chosen may be infinite."""
        if "exp" in ring.has:
            return np.where(c != 0, x, y)
        rest = ring.add(ring.constant(1.0), ring.mul(ring.constant(-1.0), c))
        return ring.add(ring.mul(c, x), ring.mul(rest, y))

    @classmethod
    def from_onnx(cls, node: Source) -> Term:
        """All three are broadcast."""
        return make(cls(), broadcast(*present(node.inputs, 3)))
