"""What values are of the numbers that they are computed of, as splines are: what is affine in these, whether they are
beyond knots, and splines; and what operators make of such.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from superopt.arithmetic.carrier import Array

CLOSE = 1e-5
"""What weights of a recursion may be off, in parts of the largest: knots are rounded, and so are their distances."""


@dataclass(frozen=True, eq=False)
class Affine:
    """The numbers of a value, times something, and something added; a row for each number, a column for each place."""

    of: ir.Value
    times: Array
    more: Array


@dataclass(frozen=True, eq=False)
class Beyond:
    """Whether numbers are above knots, or below; a number that is a knot may be, too."""

    of: ir.Value
    knots: Array
    above: bool
    closed: bool


@dataclass(frozen=True, eq=False)
class Spline:
    """All B-splines of a degree over knots; of degree 0 those are 1 in a cell and 0 elsewhere."""

    of: ir.Value
    knots: Array
    degree: int


@dataclass(frozen=True, eq=False)
class Weighted:
    """Splines times what is affine in the same numbers."""

    by: Affine
    spline: Spline


class Never:
    """What is true of no finite number."""


Function: TypeAlias = Affine | Beyond | Spline | Weighted | Never
Read: TypeAlias = "Function | Array"


def _sum(read: list[Read]) -> Function | None:
    one, other = read
    if isinstance(one, Weighted) and isinstance(other, Weighted):
        return _raised(one, other) or _raised(other, one)
    if isinstance(one, np.ndarray):
        one, other = other, one
    if isinstance(one, Affine) and isinstance(other, np.ndarray):
        return Affine(one.of, one.times, one.more + other)
    return None


def _difference(read: list[Read]) -> Function | None:
    one, other = read
    if isinstance(other, np.ndarray):
        return _sum([one, -other])
    if isinstance(other, Affine) and isinstance(one, np.ndarray):
        return Affine(other.of, -other.times, one - other.more)
    return None


def _product(read: list[Read]) -> Function | None:
    one, other = read
    if isinstance(one, np.ndarray) or isinstance(other, Affine):
        one, other = other, one
    if isinstance(one, Beyond) and isinstance(other, Beyond):
        return _cells([one, other])
    if isinstance(one, Affine) and isinstance(other, np.ndarray):
        return Affine(one.of, one.times * other, one.more * other)
    if isinstance(one, Affine) and isinstance(other, Spline) and one.of is other.of:
        return Weighted(one, other)
    if isinstance(one, Weighted) and isinstance(other, np.ndarray):
        return Weighted(Affine(one.by.of, one.by.times * other, one.by.more * other), one.spline)
    is_one = isinstance(one, Spline) and isinstance(other, np.ndarray) and bool((other == 1).all())
    return one if is_one and isinstance(one, Spline) else None


def _quotient(read: list[Read]) -> Function | None:
    one, other = read
    return _product([one, 1.0 / other]) if isinstance(other, np.ndarray) and bool(other.all()) else None


def _negated(read: list[Read]) -> Function | None:
    return _product([read[0], np.array([[-1.0]])])


def _compared(above: bool, closed: bool) -> Callable[[list[Read]], Function | None]:
    """Which way numbers are beyond knots."""

    def beyond(read: list[Read]) -> Function | None:
        one, other = read
        if isinstance(one, Affine) and isinstance(other, np.ndarray) and _is_plain(one):
            return Beyond(one.of, other, above, closed)
        if isinstance(other, Affine) and isinstance(one, np.ndarray) and _is_plain(other):
            return Beyond(other.of, one, not above, closed)
        return None

    return beyond


def _is_plain(affine: Affine) -> bool:
    return bool((affine.times == 1).all() and not affine.more.any())


def _not(read: list[Read]) -> Function | None:
    (one,) = read
    return Beyond(one.of, one.knots, not one.above, not one.closed) if isinstance(one, Beyond) else None


def _cells(read: list[Read]) -> Function | None:
    """In which cells numbers are; a knot belongs to one of its two cells."""
    if len(read) != 2 or not all(isinstance(one, Beyond) for one in read):
        return None
    low, high = sorted((one for one in read if isinstance(one, Beyond)), key=lambda one: not one.above)
    if low.of is not high.of or not low.above or high.above or low.closed == high.closed:
        return None
    lows, highs = low.knots, high.knots
    if lows.shape != highs.shape or lows.shape[1] < 2 or not np.array_equal(lows[:, 1:], highs[:, :-1]):
        return None
    return Spline(low.of, np.concatenate([lows, highs[:, -1:]], axis=1), 0)


def _chosen(read: list[Read]) -> Read | None:
    """What is there where a number is none; of splines all are."""
    never, _, kept = read
    return kept if isinstance(never, Never) else None


def _never(read: list[Read]) -> Function | None:
    return Never() if isinstance(read[0], Spline | Affine | Weighted) else None


def _raised(one: Weighted, other: Weighted) -> Spline | None:
    """Splines of the next degree, if the weights are theirs."""
    left, right, degree = one.spline.knots, other.spline.knots, one.spline.degree + 1
    if left.shape != right.shape or one.spline.of is not other.spline.of or other.spline.degree + 1 != degree:
        return None
    if left.shape[1] < 2 or not np.array_equal(left[:, 1:], right[:, :-1]):
        return None
    knots = np.concatenate([left, right[:, -1:]], axis=1)
    rising, falling = knots[:, degree:-1] - knots[:, : -degree - 1], knots[:, degree + 1 :] - knots[:, 1:-degree]
    if not (rising > 0).all() or not (falling > 0).all():
        return None
    is_next = _are(one.by, 1 / rising, -knots[:, : -degree - 1] / rising)
    is_next = is_next and _are(other.by, -1 / falling, knots[:, degree + 1 :] / falling)
    return Spline(one.spline.of, knots, degree) if is_next else None


def _are(affine: Affine, times: Array, more: Array) -> bool:
    """Whether factors and what is added are these, but for rounding."""
    pairs = ((affine.times, times), (affine.more, more))
    largest = max(float(np.abs(wanted).max()) for _, wanted in pairs)
    try:
        return all(bool((np.abs(found - wanted) <= CLOSE * largest).all()) for found, wanted in pairs)
    except ValueError:  # of other knots
        return False


WAYS: Mapping[str, Callable[[list[Read]], Read | None]] = {
    "Add": _sum,
    "And": _cells,
    "Div": _quotient,
    "Greater": _compared(above=True, closed=False),
    "GreaterOrEqual": _compared(above=True, closed=True),
    "IsInf": _never,
    "IsNaN": _never,
    "Less": _compared(above=False, closed=False),
    "LessOrEqual": _compared(above=False, closed=True),
    "Mul": _product,
    "Neg": _negated,
    "Not": _not,
    "Sub": _difference,
    "Where": _chosen,
}
"""What operators make of what they read."""
