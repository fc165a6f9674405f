"""What a reduction makes of few places, as sums of what stands at each: of what was stacked, of coordinates.

`stack(a, b, c).mean(-1)` is `(a + b + c) / 3`, and nothing is copied; a squared distance of points in space is the sum
of three squared differences. Runtimes repeat, stack and reduce short rows slowly: onnxruntime 1.32 takes six times as
long for the distances between 128 and 256 points. So each place is computed by itself, down to where places were
joined, or values that are repeated beside others are still small; one step at a time would gain nothing before that.
And to where they are those of windows: each is a slice of all, and no window is laid out, as filters do that take the
largest of what a window's places are moved by (morphology by a shape; Serra 1982). onnxruntime 1.32 takes 0.7 ms for
the largest and the smallest in a cross of 3 by 3 over three images of 64 by 64, and 0.09 by slices.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import TypeVar

from superopt.dim import Dim, Shape
from superopt.operators.along import Origins, read_along
from superopt.operators.chains import joined, viewed
from superopt.operators.clip import Clip
from superopt.operators.constant import filled
from superopt.operators.declare import CATALOGUE
from superopt.operators.declared import Declared
from superopt.operators.layout import Concat, Expand, Reshape, Transpose, reshaped
from superopt.operators.picks import Slice, Take
from superopt.operators.pointwise import Div, Mul
from superopt.operators.products import multiplied
from superopt.operators.reductions import Mean, Reduction
from superopt.relations import equal_shapes, is_one
from superopt.search.rewriting.finders.fewer import Fewer
from superopt.term import Operator, Term, make

_T = TypeVar("_T")

MOST_JOINED, MOST_REPEATED = 16, 4
"""So many places at most: of what is stacked, whose parts are there, and of rows, which are slices of each."""

MOST_MADE = 96
"""More operators than these are not written out."""


class Placewise(Fewer):
    """Finds what is reduced along few places, each of which may be computed by itself."""

    name = "few places one by one"
    heads = (Mul, Reduction)

    def may_be(self, term: Term) -> bool:
        """Whether it reduces so many places along one axis, or multiplies them, of what is computed."""
        found = _reduced(term)
        return bool(found[0].inputs) if found is not None else _along_two(term) is not None

    def made(self, term: Term) -> Term | None:
        """The same place by place; None where places were neither joined nor rows repeated beside others."""
        if (both := _along_two(term)) is not None:
            inner = self.of(both.inputs[0])
            if inner is not None and (made := self.of(make(both.operator, (inner,)))) is not None:
                return made
        if (found := _reduced(term)) is None:
            return None
        x, axis, join = found
        count = x.shape[axis]
        assert isinstance(count, int)
        places = _Places()
        if not places.may_be_apart(x, axis, count) or places.passed * count > MOST_MADE:
            return None
        whole = reduce(join, [places.of(x, axis, i) for i in range(count)])
        return Div()(whole, filled(float(count), whole.shape)) if isinstance(term.operator, Mean) else whole


def _reduced(term: Term) -> tuple[Term, int, Declared] | None:
    """What is reduced, along which axis, and what makes the result of two places; None of others and of many places."""
    op = term.operator
    if isinstance(op, Mul):
        product = multiplied(term)
        return None if product is None else (*product, op)
    if not isinstance(op, Reduction) or len(op.axes) != 1:
        return None
    (axis,), (x,), join = op.axes, term.inputs, "add" if isinstance(op, Mean) else op.joins
    count = x.shape[axis]
    if join is None or not isinstance(count, int) or not 1 < count <= MOST_JOINED:
        return None
    return x, axis, CATALOGUE[join]()


def _along_two(term: Term) -> Term | None:
    """The same reduction along one axis after the other, where it is along two; None of others."""
    op = term.operator
    if not isinstance(op, Reduction) or not op.nests or op.joins is None:
        return None
    (x,) = term.inputs
    if len(op.axes) == 2:
        first, second = sorted(op.axes)
        return op.of((first,))(op.of((second,))(x))
    below = x.operator
    return term if type(below) is type(op) and len(op.axes) == len(below.axes) == 1 else None


class _Places:
    """Single places of terms along an axis, which they do not have then."""

    def __init__(self) -> None:
        self._apart: dict[tuple[Term, int], bool] = {}
        self._made: dict[tuple[Term, int, int], Term] = {}

    @property
    def passed(self) -> int:
        """How many operators are computed place by place."""
        return sum(self._apart.values())

    def may_be_apart(self, term: Term, axis: int, count: int) -> bool:
        """Whether so many places of a term are computed apart, each of less than a slice of the whole."""
        if (term, axis) not in self._apart:
            self._apart[term, axis] = not term.constant and self._are_apart(term, axis, count)
        return self._apart[term, axis]

    def _are_apart(self, term: Term, axis: int, count: int) -> bool:
        op = term.operator
        if isinstance(op, Concat) and op.axis == axis:
            return len(joined(term)) == count
        if _windows(term, axis) is not None:
            return True
        if isinstance(op, Expand) and count <= MOST_REPEATED and _repeats(op):
            return axis in op.axes
        below = _below(term, axis)
        apart = [a is not None and self.may_be_apart(i, a, count) for i, a in zip(term.inputs, below, strict=True)]
        return any(apart)

    def of(self, term: Term, axis: int, place: int) -> Term:
        """A place of a term, without the axis."""
        key = term, axis, place
        if key not in self._made:
            self._made[key] = self._one(*key)
        return self._made[key]

    def _one(self, term: Term, axis: int, place: int) -> Term:
        op, to = term.operator, _without(term.shape, axis)
        if not isinstance(op, Expand) and not self._apart.get((term, axis)):
            return reshaped(Slice(axis, place, place + 1)(term), to)
        if isinstance(op, Concat) and op.axis == axis:
            return reshaped(viewed(joined(term)[place]), to)
        if (taken := _windows(term, axis)) is not None:
            return _of_all_windows(taken, term.shape[axis], place)
        inputs = [
            i if a is None else self.of(i, a, place) for i, a in zip(term.inputs, _below(term, axis), strict=True)
        ]
        return reshaped(viewed(*inputs), to) if isinstance(op, Reshape) else make(_lower(op, axis, to), inputs)


def _windows(term: Term, axis: int) -> Term | None:
    """What is taken so that it has windows of so many places as there are along an axis, which all of them have."""
    if not isinstance(term.operator, Reshape) or not axis:
        return None
    (taken,) = term.inputs
    op, whole = taken.operator, _without(term.shape, axis)
    beside = [shape for shape in (taken.shape, whole) if len(shape) >= axis]
    if not isinstance(op, Take) or op.axis != axis - 1 or len(beside) < 2 or not isinstance(term.shape[axis], int):
        return None
    others = (_without(shape, op.axis) for shape in beside)
    return taken if equal_shapes(*others) else None


def _of_all_windows(taken: Term, count: Dim, place: int) -> Term:
    """A place of all windows that are taken, each of so many."""
    op = taken.operator
    assert isinstance(op, Take)
    assert isinstance(count, int)
    indices = op.indices[place::count]
    first, last = indices[0], indices[-1]
    one = Slice(op.axis, first, last + 1) if indices == tuple(range(first, last + 1)) else Take(op.axis, indices)
    return one(taken.inputs[0])


def _below(term: Term, axis: int) -> Origins:
    """Along which axes inputs are read for places along one axis, of operators that may be applied to each of these."""
    op = term.operator
    passed = isinstance(op, Expand | Reshape | Transpose | Clip) or (isinstance(op, Declared) and op.pointwise)
    if isinstance(op, Slice | Take) and op.axis != axis:
        return (axis,)
    found = read_along(term, axis) if passed else None
    return (None,) * len(term.inputs) if found is None else found


def _repeats(op: Expand) -> bool:
    """Whether it repeats anything more than once."""
    return not all(is_one(d) for a, d in enumerate(op.to) if a not in op.axes)


def _lower(op: Operator, axis: int, to: Shape) -> Operator:
    """The operator of one place, whose result has not the axis."""
    if isinstance(op, Transpose):
        return Transpose(tuple(a - (a > op.perm[axis]) for a in _without(op.perm, axis)))
    if isinstance(op, Slice | Take):
        return replace(op, axis=op.axis - (op.axis > axis))
    return Expand(tuple(a - (a > axis) for a in op.axes if a != axis), to) if isinstance(op, Expand) else op


def _without(given: tuple[_T, ...], axis: int) -> tuple[_T, ...]:
    return (*given[:axis], *given[axis + 1 :])
