"""Operators that act on each element by itself. Shapes are equal; broadcasting is `expand`, made explicit."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from superopt.arithmetic.carrier import Array, Carrier, Function
from superopt.demands import require
from superopt.dim import Shape
from superopt.operators.declare import operator
from superopt.operators.declared import Declared
from superopt.operators.layout import broadcast
from superopt.operators.nodes import Source, present
from superopt.term import Term, make


class Pointwise(Declared):
    """Base of the point-wise operators: the shape rule, and reading with broadcasts made explicit."""

    pointwise: ClassVar[bool] = True

    def shape(self, *shapes: Shape) -> Shape:
        """Equal shapes give that shape."""
        for other in shapes[1:]:
            require(len(other) == len(shapes[0]), f"{self.name}: ranks differ: {shapes[0]} and {other}")
            for a, b in zip(shapes[0], other, strict=True):
                require(a == b, f"{self.name}: shapes differ: {shapes[0]} and {other}")
        return shapes[0]


class Unary(Pointwise):
    """A point-wise function of one value."""

    def shape(self, x: Shape) -> Shape:  # type: ignore[override]
        """The shape of the input."""
        return x


class Binary(Pointwise):
    """A point-wise function of two values."""

    def shape(self, x: Shape, y: Shape) -> Shape:  # type: ignore[override]
        """The shape of both inputs."""
        return super().shape(x, y)

    @classmethod
    def from_onnx(cls, node: Source) -> Term:
        """Broadcast both inputs to their common shape first."""
        return make(cls(), broadcast(*present(node.inputs, 2)))


class Real(Pointwise):
    """A function of real numbers that is no sum or product; `real` computes it in floating point."""

    ordered: ClassVar[bool] = False
    """It is made of comparisons and sums, so that it is exact over integers."""

    def real(self, *arrays: Array) -> Array:
        """The function of arrays of one shape, in the elements' own type."""
        raise NotImplementedError

    @property
    def function(self) -> Function:
        """The function as carriers take it. Attributes are part of its name."""
        return Function(str(self), self.real, self.zero, self.ordered, self.commutative)


class UnaryReal(Real, Unary):
    """A real function of one value."""

    def eval(self, ring: Carrier, x: Array) -> Array:  # type: ignore[override]
        """The function of each element."""
        return ring.apply(self.function, x)


class BinaryReal(Real, Binary):
    """A real function of two values."""

    def eval(self, ring: Carrier, x: Array, y: Array) -> Array:  # type: ignore[override]
        """The function of each pair of elements."""
        return ring.apply(self.function, x, y)


@operator("add", onnx="Add")
class Add(Binary):
    """`z = x + y`."""

    element = "(= r (+ x y))"
    keeps = frozenset({"nonnegative"})
    of_weights = True
    commutative = True
    zero = True
    laws = """
    (law add-nothing (given (?x *)) (= (add ?x (expand () (scalar 0.0))) ?x))
    (law add-assoc (given (?x *) (?y *) (?z *)) (= (add (add ?x ?y) ?z) (add ?x (add ?y ?z))))
    """

    def eval(self, ring: Carrier, x: Array, y: Array) -> Array:  # type: ignore[override]
        """The sum."""
        return ring.add(x, y)


@operator("mul", onnx="Mul")
class Mul(Binary):
    """`z = x · y`."""

    element = "(= r (* x y))"
    keeps = frozenset({"nonnegative"})
    of_weights = True
    commutative = True
    zero = True
    linear = (0, 1)
    laws = """
    (law mul-zero (given (?x *) (?y *)) (if (finite ?x)) (= (add ?y (mul ?x (expand () (scalar 0.0)))) ?y))
    (law mul-one (given (?x *)) (= (mul ?x (expand () (scalar 1.0))) ?x))
    (law mul-assoc (given (?x *) (?y *) (?z *)) (= (mul (mul ?x ?y) ?z) (mul ?x (mul ?y ?z))))
    """

    def eval(self, ring: Carrier, x: Array, y: Array) -> Array:  # type: ignore[override]
        """The product."""
        return ring.mul(x, y)


@operator("div", onnx="Div")
class Div(Binary):
    """`z = x / y`."""

    element = "(= r (/ x y))"
    defined = "(distinct y 0.0)"
    keeps = frozenset({"nonnegative"})
    of_weights = True
    needs = frozenset({"div"})
    linear = (0,)
    laws = """
    (law div-one (given (?x *)) (= (div ?x (expand () (scalar 1.0))) ?x))
    (law mul-div (given (?x *) (?y *) (?z *)) (= (mul ?x (div ?y ?z)) (div (mul ?x ?y) ?z)))
    (law div-div (given (?x *) (?y *) (?z *)) (= (div (div ?x ?y) ?z) (div ?x (mul ?y ?z))))
    (law div-mul (given (?x *) (?y *)) (if (nonzero ?y)) (= (div (mul ?x ?y) ?y) ?x))
    """

    def eval(self, ring: Carrier, x: Array, y: Array) -> Array:  # type: ignore[override]
        """The quotient."""
        return ring.div(x, y)


@operator("sqrt", onnx="Sqrt")
class Sqrt(UnaryReal):
    """`y = √x`."""

    element = "(and (>= r 0.0) (= x (* r r)))"
    defined = "(>= x 0.0)"
    gives = frozenset({"nonnegative"})
    needs = frozenset({"root"})
    zero = True
    laws = """
    (law sqrt-mul (given (?x *) (?y *)) (if (nonnegative ?x) (nonnegative ?y))
      (= (sqrt (mul ?x ?y)) (mul (sqrt ?x) (sqrt ?y))))
    (law sqrt-squared (given (?x *)) (if (nonnegative ?x)) (= (mul (sqrt ?x) (sqrt ?x)) ?x))
    """

    def real(self, x: Array) -> Array:  # type: ignore[override]
        """The root."""
        return np.sqrt(x)


@operator("relu", onnx="Relu")
class Relu(UnaryReal):
    """`y = max(x, 0)`."""

    element = "(= r (ite (>= x 0.0) x 0.0))"
    keeps = frozenset({"finite"})
    gives = frozenset({"nonnegative"})
    needs = frozenset({"order"})
    zero = True
    ordered = True
    laws = """
    (law relu-nothing (given (?x *)) (if (nonnegative ?x)) (= (relu ?x) ?x))
    (law relu-mul (given (?x *) (?y *)) (if (nonnegative ?y)) (= (relu (mul ?x ?y)) (mul (relu ?x) ?y)))
    (law relu-square (given (?x *)) (= (relu (mul ?x ?x)) (mul ?x ?x)))
    (law relu-twice (given (?x *)) (= (relu (add ?x ?x)) (add (relu ?x) (relu ?x))))
    (law mul-relu (given (?x *)) (= (mul ?x (relu ?x)) (mul (relu ?x) (relu ?x))))
    """

    def real(self, x: Array) -> Array:  # type: ignore[override]
        """The positive part."""
        return np.maximum(x, 0)
