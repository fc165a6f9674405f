"""Functions of real numbers, taken of each element: exponentials, powers, signs, bounds."""

from __future__ import annotations

import math

import numpy as np

from superopt.arithmetic.carrier import Array, Carrier
from superopt.operators.constant import filled
from superopt.operators.declare import operator, reads
from superopt.operators.element_types import ONNX_TYPES
from superopt.operators.layout import broadcast
from superopt.operators.nodes import NotUnderstood, Source, present
from superopt.operators.pointwise import Binary, BinaryReal, Unary, UnaryReal
from superopt.term import FACTS, Term, make


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


@operator("max", onnx="Max")
class Max(BinaryReal):
    """`z = max(x, y)`."""

    element = "(= r (ite (>= x y) x y))"
    keeps = frozenset(FACTS)
    needs = frozenset({"order"})
    commutative = True
    zero = True
    ordered = True
    laws = """
    (law max-self (given (?x *)) (= (max ?x ?x) ?x))
    (law max-min (given (?x *) (?y *)) (= (max ?x (min ?x ?y)) ?x))
    (law max-add (given (?x *) (?y *) (?z *)) (= (add (max ?x ?y) ?z) (max (add ?x ?z) (add ?y ?z))))
    (law relu-max (given (?x *) (?y *)) (= (relu (max ?x ?y)) (max (relu ?x) (relu ?y))))
    (law max-mul (given (?x *) (?y *) (?z *)) (if (nonnegative ?z))
      (= (mul (max ?x ?y) ?z) (max (mul ?x ?z) (mul ?y ?z))))
    (law max-assoc (given (?x *) (?y *) (?z *)) (= (max (max ?x ?y) ?z) (max ?x (max ?y ?z))))
    """

    def real(self, x: Array, y: Array) -> Array:  # type: ignore[override]
        """The larger; not a number where one is not."""
        return np.maximum(x, y)


@operator("min", onnx="Min")
class Min(BinaryReal):
    """`z = min(x, y)`."""

    element = "(= r (ite (<= x y) x y))"
    keeps = frozenset(FACTS)
    needs = frozenset({"order"})
    commutative = True
    zero = True
    ordered = True
    laws = """
    (law min-self (given (?x *)) (= (min ?x ?x) ?x))
    (law min-max (given (?x *) (?y *)) (= (min ?x (max ?x ?y)) ?x))
    (law min-neg (given (?x *) (?y *)) (= (neg (max ?x ?y)) (min (neg ?x) (neg ?y))))
    (law min-mul (given (?x *) (?y *) (?z *)) (if (nonnegative ?z))
      (= (mul (min ?x ?y) ?z) (min (mul ?x ?z) (mul ?y ?z))))
    (law min-assoc (given (?x *) (?y *) (?z *)) (= (min (min ?x ?y) ?z) (min ?x (min ?y ?z))))
    """

    def real(self, x: Array, y: Array) -> Array:  # type: ignore[override]
        """The smaller; not a number where one is not."""
        return np.minimum(x, y)


@reads("Max")
def max_of(node: Source) -> Term:
    """A chain that leans left."""
    return _chained(Max(), node)


@reads("Min")
def min_of(node: Source) -> Term:
    """A chain that leans left."""
    return _chained(Min(), node)


def _chained(op: Max | Min, node: Source) -> Term:
    total, *others = present(node.inputs, len(node.inputs))
    for other in others:
        total = make(op, broadcast(total, other))
    return total


@operator("pow", onnx="Pow")
class Pow(BinaryReal):
    """`z = x^y`."""

    needs = frozenset({"exp"})

    def real(self, x: Array, y: Array) -> Array:  # type: ignore[override]
        """The power; not a number for a negative base and an exponent that is not whole."""
        return np.power(x, y)

    @classmethod
    def from_onnx(cls, node: Source) -> Term:
        """Exponents are of the base's type, or one number of another."""
        x, y = present(node.inputs, 2)
        if x.type.dtype != y.type.dtype:
            number = node.constant(1)
            if number is None or number.size != 1 or x.type.dtype not in ONNX_TYPES:
                raise NotUnderstood(f"a power of {x.type.dtype} by {y.type.dtype}")
            y = filled(float(number.item()), y.shape)
        return make(cls(), broadcast(x, y))


@operator("exp", onnx="Exp")
class Exp(UnaryReal):
    """`y = eˣ`."""

    element = "(and (= r (f x)) (> r 0.0))"
    gives = frozenset({"nonnegative"})
    needs = frozenset({"exp"})

    def real(self, x: Array) -> Array:  # type: ignore[override]
        """The exponential."""
        return np.exp(x)


@operator("log", onnx="Log")
class Log(UnaryReal):
    """`y = ln x`."""

    element = "(= r (f x))"
    defined = "(> x 0.0)"
    needs = frozenset({"exp"})

    def real(self, x: Array) -> Array:  # type: ignore[override]
        """The natural logarithm."""
        return np.log(x)


@operator("erf", onnx="Erf")
class Erf(UnaryReal):
    """`y = 2/√π ∫₀ˣ exp(−t²) dt`."""

    element = "(and (= r (f x)) (= (= x 0.0) (= r 0.0)))"
    needs = frozenset({"exp"})
    zero = True

    def real(self, x: Array) -> Array:  # type: ignore[override]
        """The error function; numpy has none."""
        flat, found = np.ravel(x), np.empty(np.size(x))
        for at in range(0, flat.size, _AT_ONCE):
            part = flat[at : at + _AT_ONCE].tolist()
            found[at : at + _AT_ONCE] = np.fromiter(map(math.erf, part), np.float64, len(part))
        return np.asarray(found.reshape(np.shape(x)), dtype=np.result_type(x))


_AT_ONCE = 2**16
"""So many elements are numbers of Python at a time, of ten times the bytes: half the time of `np.vectorize`."""


@operator("tanh", onnx="Tanh")
class Tanh(UnaryReal):
    """`y = tanh x`."""

    element = "(and (= r (f x)) (= (= x 0.0) (= r 0.0)))"
    keeps = frozenset({"finite"})
    needs = frozenset({"exp"})
    zero = True

    def real(self, x: Array) -> Array:  # type: ignore[override]
        """The hyperbolic tangent."""
        return np.tanh(x)


@operator("sigmoid", onnx="Sigmoid")
class Sigmoid(UnaryReal):
    """`y = 1 / (1 + e⁻ˣ)`, computed from `tanh` (no exponential overflows)."""

    element = "(and (= r (f x)) (> r 0.0))"
    keeps = frozenset({"finite"})
    gives = frozenset({"nonnegative"})
    needs = frozenset({"exp"})

    def real(self, x: Array) -> Array:  # type: ignore[override]
        """The logistic function."""
        return np.asarray(0.5 + 0.5 * np.tanh(0.5 * x))


@operator("softplus", onnx="Softplus")
class Softplus(UnaryReal):
    """`y = ln(1 + eˣ)`, computed as `max(x, 0) + ln(1 + e^−|x|)` (stable only in this form)."""

    element = "(and (= r (f x)) (> r 0.0))"
    gives = frozenset({"nonnegative"})
    needs = frozenset({"exp"})

    def real(self, x: Array) -> Array:  # type: ignore[override]
        """The smooth positive part."""
        return np.logaddexp(x, 0.0)


@operator("sin", onnx="Sin")
class Sin(UnaryReal):
    """`y = sin x`."""

    element = "(and (= r (f x)) (=> (= x 0.0) (= r 0.0)))"
    needs = frozenset({"exp"})
    zero = True

    def real(self, x: Array) -> Array:  # type: ignore[override]
        """The sine."""
        return np.sin(x)


@operator("cos", onnx="Cos")
class Cos(UnaryReal):
    """`y = cos x`."""

    element = "(= r (f x))"
    needs = frozenset({"exp"})

    def real(self, x: Array) -> Array:  # type: ignore[override]
        """The cosine."""
        return np.cos(x)


@operator("floor", onnx="Floor")
class Floor(UnaryReal):
    """`y = ⌊x⌋`."""

    jumps = True
    needs = frozenset({"root"})
    zero = True

    def real(self, x: Array) -> Array:  # type: ignore[override]
        """The largest whole number that is not larger."""
        return np.floor(x)


@operator("ceil", onnx="Ceil")
class Ceil(UnaryReal):
    """`y = ⌈x⌉`."""

    jumps = True
    needs = frozenset({"root"})
    zero = True

    def real(self, x: Array) -> Array:  # type: ignore[override]
        """The smallest whole number that is not smaller."""
        return np.ceil(x)


@operator("sign", onnx="Sign")
class Sign(UnaryReal):
    """`y = −1, 0 or 1`, as x is below, at or above 0."""

    jumps = True
    needs = frozenset({"order"})
    zero = True
    ordered = True

    def real(self, x: Array) -> Array:  # type: ignore[override]
        """The sign."""
        return np.sign(x)


@operator("round", onnx="Round")
class Round(UnaryReal):
    """`y = x` to the nearest whole number, halves to the even one."""

    jumps = True
    needs = frozenset({"root"})
    zero = True

    def real(self, x: Array) -> Array:  # type: ignore[override]
        """As IEEE 754 rounds."""
        return np.rint(x)
