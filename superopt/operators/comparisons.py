"""Comparisons: of numbers they make truth values, which in every carrier are 0 and 1."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from superopt.arithmetic.carrier import Array
from superopt.operators.declare import operator, reads
from superopt.operators.layout import broadcast
from superopt.operators.nodes import Source, present
from superopt.operators.pointwise import BinaryReal, UnaryReal
from superopt.term import TRUTH, Term, Type, join_dtypes, make


class Comparison(BinaryReal):
    """Base of the comparisons: of two values, a truth value."""

    jumps = True
    needs = frozenset({"order"})
    ordered = True

    def dtype(self, inputs: Sequence[Type]) -> str:
        """Truth values, of inputs of one type."""
        join_dtypes(inputs, self.name)
        return TRUTH


@operator("less", onnx="Less")
class Less(Comparison):
    """`z = 1 where x < y, else 0`."""

    def real(self, x: Array, y: Array) -> Array:  # type: ignore[override]
        """Never where one is not a number."""
        return (x < y).astype(x.dtype)


@operator("less_or_equal", onnx="LessOrEqual")
class LessOrEqual(Comparison):
    """`z = 1 where x ≤ y, else 0`."""

    def real(self, x: Array, y: Array) -> Array:  # type: ignore[override]
        """Never where one is not a number."""
        return (x <= y).astype(x.dtype)


@reads("Greater")
def greater(node: Source) -> Term:
    """The other way round."""
    x, y = present(node.inputs, 2)
    return make(Less(), broadcast(y, x))


@reads("GreaterOrEqual")
def greater_or_equal(node: Source) -> Term:
    """The other way round."""
    x, y = present(node.inputs, 2)
    return make(LessOrEqual(), broadcast(y, x))


@operator("equal", onnx="Equal")
class Equal(Comparison):
    """`z = 1 where x = y, else 0`."""

    commutative = True

    def real(self, x: Array, y: Array) -> Array:  # type: ignore[override]
        """Never where one is not a number."""
        return np.asarray(x == y, x.dtype)


@operator("is_nan", onnx="IsNaN")
class IsNan(UnaryReal):
    """`y = 1 where x is not a number, else 0`."""

    jumps = True
    needs = frozenset({"root"})

    def dtype(self, inputs: Sequence[Type]) -> str:
        """Truth values."""
        return TRUTH

    def real(self, x: Array) -> Array:  # type: ignore[override]
        """As IEEE 754 says."""
        return np.isnan(x).astype(x.dtype)
