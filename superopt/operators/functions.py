"""Transcendental functions, taken of each element: powers, exponentials, logarithms, sines."""

from __future__ import annotations

import numpy as np

from superopt.arithmetic.carrier import Array
from superopt.arithmetic.error_function import erf
from superopt.operators.constant import filled
from superopt.operators.declare import operator
from superopt.operators.element_types import ONNX_TYPES
from superopt.operators.layout import broadcast
from superopt.operators.nodes import NotUnderstood, Source, present
from superopt.operators.pointwise import BinaryReal, UnaryReal
from superopt.term import Term, make


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
        """The error function."""
        return np.asarray(erf(x), dtype=np.result_type(x))


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
    """`y = 1 / (1 + e⁻ˣ)`."""

    element = "(and (= r (f x)) (> r 0.0))"
    keeps = frozenset({"finite"})
    gives = frozenset({"nonnegative"})
    needs = frozenset({"exp"})

    def real(self, x: Array) -> Array:  # type: ignore[override]
        """The logistic function; 0 where the exponential is infinite."""
        with np.errstate(over="ignore"):
            return np.asarray(1.0 / (1.0 + np.exp(-x)))


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
