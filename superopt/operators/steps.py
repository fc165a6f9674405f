"""Functions that jump: whole numbers near a number, and its sign."""

from __future__ import annotations

import numpy as np

from superopt.arithmetic.carrier import Array
from superopt.operators.declare import operator
from superopt.operators.pointwise import UnaryReal


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
