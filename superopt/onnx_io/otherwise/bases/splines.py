"""B-splines as scripts write them: by Cox and de Boor's recursion (1972), over a grid of knots, of each number of rows.

Each value is told as what it is of the numbers: a multiple of them with something added, which of the cells between
knots they are in, or splines over knots. However a product or a comparison is spelled, that is told by its constants.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from superopt.arithmetic.carrier import Array
from superopt.onnx_io.otherwise.bases.views import same_elements
from superopt.onnx_io.otherwise.reading import data_of, is_a
from superopt.onnx_io.program import Program

FLOATS = ("float32", "float64")
"""The types that hold what splines are."""

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


class Splines:
    """What values of a program are of the numbers that they are computed of."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._known: dict[ir.Value, Read | None] = {}

    def spline(self, value: ir.Value) -> Spline | None:
        """The splines that a value is, of degree 1 at least: those have no jumps, and so no ends of cells."""
        found = self.of(value)
        return found if isinstance(found, Spline) and found.degree else None

    def of(self, value: ir.Value | None) -> Read | None:
        """What a value is; None of what is something else."""
        if value is None:
            return None
        if value not in self._known:
            self._known[value] = None  # of what reads itself, which none does
            self._known[value] = self._found(value)
        return self._known[value]

    def _found(self, value: ir.Value) -> Read | None:
        data = data_of(self._program, value)
        if data is not None:
            return _row_by_row(data)
        known, node = self._program.values.get(value.name or ""), value.producer()
        if known is None or not known.type.rank:
            return None
        if known.shape[-1] == 1 and known.type.dtype in FLOATS:
            return Affine(same_elements(self._program, value), np.ones((1, 1)), np.zeros((1, 1)))
        if node is None:
            return None
        if is_a(node, "Slice"):
            return self._sliced(node)
        if is_a(node, "Expand", "Identity"):
            return self.of(node.inputs[0])
        if is_a(node, "Cast"):
            return self._cast(node, known.type.dtype)
        way = _WAYS.get(node.op_type) if is_a(node, *_WAYS) else None
        read = [self.of(v) for v in node.inputs] if way is not None else []
        if is_a(node, "And") and any(isinstance(one, Never) for one in read):
            return Never()
        told = [one for one in read if one is not None]
        return way(told) if way is not None and len(told) == len(read) else None

    def _cast(self, node: ir.Node, dtype: str) -> Read | None:
        """What is true or not, in any type, and numbers that stay what they are."""
        inner = self.of(node.inputs[0])
        is_truth = isinstance(inner, Beyond | Never) or (isinstance(inner, Spline) and not inner.degree)
        return inner if is_truth or dtype in FLOATS else None

    def _sliced(self, node: ir.Node) -> Read | None:
        """Some splines in a row."""
        inner = self.of(node.inputs[0])
        bounds = [data_of(self._program, v) for v in node.inputs[1:]]
        if not isinstance(inner, Spline) or any(b is None or b.size != 1 for b in bounds) or len(bounds) < 3:
            return None
        start, end, axis, *step = (int(b.reshape(-1)[0]) for b in bounds if b is not None)
        rank = self._program.values[node.outputs[0].name or ""].type.rank
        count = inner.knots.shape[1] - inner.degree - 1
        places = range(count)[slice(start, end)]
        if axis not in (-1, rank - 1) or step not in ([], [1]) or not places:
            return None
        return Spline(inner.of, inner.knots[:, places[0] : places[-1] + inner.degree + 2], inner.degree)


def _row_by_row(data: Array) -> Array | None:
    """Constants by numbers of a row and places; None of those that are others in each row."""
    if any(d != 1 for d in data.shape[:-2]):
        return None
    return np.asarray(data.reshape(data.shape[-2:] if data.ndim > 1 else (1, data.size)), np.float64)


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


_WAYS: Mapping[str, Callable[[list[Read]], Read | None]] = {
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
