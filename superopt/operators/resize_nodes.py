"""Resize nodes, as they are written: to sizes, or by factors."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from superopt.dim import Dim, Shape
from superopt.operators.element_types import ONNX_TYPES
from superopt.operators.nodes import Emitter
from superopt.relations import are_equal


def resized(out: Emitter, x: str, to: Shape, given: Mapping[str, Any]) -> str:
    """A Resize to sizes, since opset 11; by factors where sizes are symbols and factors are not: to sizes that are
    computed while the model runs, runtimes do not resize in the layout that convolutions have.
    """
    symbolic = not all(isinstance(d, int) for d in to)
    factors = [_factor(size, d) for size, d in zip(out.shape(x), to, strict=True)]
    if symbolic and out.opset >= 12 and None not in factors:
        by = out.node("Constant", (), {"value_floats": factors})
        return out.node("Resize", (x, _nothing(out), by), given)
    return to_sizes(out, x, to, given)


def to_sizes(out: Emitter, x: str, to: Shape, given: Mapping[str, Any]) -> str:
    """A Resize to sizes, since opset 11."""
    nothing = _nothing(out)
    return out.node("Resize", (x, nothing, nothing, out.integers(to)), given)


def _nothing(out: Emitter) -> str:
    """What is left out, which before opset 13 had to be there, and empty."""
    return "" if out.opset >= 13 else out.node("Cast", (out.integers(()),), {"to": ONNX_TYPES["float32"]})


def _factor(size: Dim, to: Dim) -> float | None:
    """How many times as large a size becomes, where that is a number which 32 bits hold exactly."""
    whole = to // size
    if isinstance(whole, int) and are_equal(whole * size, to):
        return float(whole)
    if isinstance(size, int) and isinstance(to, int) and Fraction(to, size).denominator.bit_count() == 1:
        return to / size
    return None
