"""Where the elements of a resized image fall among those that it is made of, and which is nearest."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from superopt.demands import require
from superopt.dim import Shape
from superopt.operators.nodes import NotUnderstood

PLACES = ("half_pixel", "align_corners", "asymmetric")
"""Where elements lie: at the centres of equal parts, from end to end, or at the starts of equal parts."""


def demand_maps(name: str, x: Shape, to: Shape, by: str) -> Shape:
    """The shape of resized maps, whose sample and channels stay. Raises `ShapeError` where there is none."""
    require(len(x) == 2 + len(to) >= 3, f"{name}: {x} has not two axes more than {to}")
    require(by in PLACES, f"{name}: elements lie {' or '.join(PLACES)}, not {by}")
    return (*x[:2], *to)


def position(p: int, size: int, to: int, by: str) -> Fraction:
    """Where element `p` of `to` falls among `size`, or beyond their ends."""
    if by == "align_corners":
        return Fraction(p * (size - 1), to - 1) if to > 1 else Fraction(0)
    half = Fraction(1, 2) if by == "half_pixel" else Fraction(0)
    return (p + half) * Fraction(size, to) - half


def place_within(p: int, size: int, to: int, by: str) -> Fraction:
    """The same, held within their ends."""
    return min(max(position(p, size, to, by), Fraction(0)), Fraction(size - 1))


_ROUNDED: dict[str, Callable[[Fraction], int]] = {
    "floor": math.floor,
    "ceil": math.ceil,
    "round_prefer_floor": lambda p: math.ceil(p - Fraction(1, 2)),
    "round_prefer_ceil": lambda p: math.floor(p + Fraction(1, 2)),
}


def nearest_of(place: Fraction, size: int, rounding: str, exact: bool) -> int:
    """The nearest of so many elements. Raises `NotUnderstood` where rounding to 32 bits would decide which it is."""
    if rounding not in _ROUNDED:
        raise NotUnderstood(f"resize to the nearest by {rounding}")
    little = (abs(place) + 1) / 2**16
    lower, own, upper = (min(max(_ROUNDED[rounding](place + d), 0), size - 1) for d in (-little, Fraction(0), little))
    if lower != upper and not exact:
        raise NotUnderstood(f"resize to the nearest where rounding decides between {(lower, upper)}")
    return own
