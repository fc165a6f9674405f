"""Negation, difference and magnitude."""

from __future__ import annotations

import numpy as np

from superopt.arithmetic.carrier import Array, Carrier
from superopt.operators.declare import operator
from superopt.operators.pointwise import Binary, Unary, UnaryReal


@operator("neg", onnx="Neg")
class Neg(Unary):
    """`y = −x`."""

    element = "(= r (- x))"
    keeps = frozenset({"finite"})
    linear = (0,)
    zero = True
    laws = """
    (law neg-neg (given (?x *)) (= (neg (neg ?x)) ?x))
    (law neg-mul (given (?x *) (?y *)) (= (neg (mul ?x ?y)) (mul (neg ?x) ?y)))
    (law neg-div (given (?x *) (?y *)) (= (neg (div ?x ?y)) (div (neg ?x) ?y)))
    (law div-neg (given (?x *) (?y *)) (= (div ?x (neg ?y)) (neg (div ?x ?y))))
    """

    def eval(self, ring: Carrier, x: Array) -> Array:  # type: ignore[override]
        """Minus one times it."""
        return ring.mul(x, ring.constant(-1.0))


@operator("sub", onnx="Sub")
class Sub(Binary):
    """`z = x − y`."""

    element = "(= r (- x y))"
    zero = True
    laws = """
    (law sub-add (given (?x *) (?y *)) (= (add (sub ?x ?y) ?y) ?x))
    (law sub-neg (given (?x *) (?y *)) (= (sub ?x ?y) (add ?x (neg ?y))))
    """

    def eval(self, ring: Carrier, x: Array, y: Array) -> Array:  # type: ignore[override]
        """The difference."""
        return ring.add(x, ring.mul(y, ring.constant(-1.0)))


@operator("abs", onnx="Abs")
class Abs(UnaryReal):
    """`y = |x|`."""

    element = "(= r (ite (>= x 0.0) x (- x)))"
    keeps = frozenset({"finite"})
    gives = frozenset({"nonnegative"})
    needs = frozenset({"order"})
    zero = True
    ordered = True
    laws = """
    (law abs-nothing (given (?x *)) (if (nonnegative ?x)) (= (abs ?x) ?x))
    (law abs-max (given (?x *)) (= (abs ?x) (max ?x (neg ?x))))
    (law abs-mul (given (?x *) (?y *)) (= (abs (mul ?x ?y)) (mul (abs ?x) (abs ?y))))
    """

    def real(self, x: Array) -> Array:  # type: ignore[override]
        """The magnitude."""
        return np.abs(x)
