"""What picks short rows, number by number: runtimes copy such rows one after the other, by a call for each.

Of rows of one number, or of few, as columns of a table, coordinates of points, real parts and the halves of boxes are;
see `operators/columns.py` for times.
"""

from __future__ import annotations

from collections.abc import Sequence

from superopt.dim import Dim, product
from superopt.operators.columns import TYPES, Columns, Elements
from superopt.operators.layout import Expand, reshaped
from superopt.operators.meanings import defines
from superopt.operators.picks import MOST_PLACES, Every, Slice, Take
from superopt.operators.rearrange import Gather
from superopt.relations import is_one
from superopt.term import Term

SHORT = 4
"""Longer rows are copied as fast."""

FEW = 8
"""More columns beside each other are a slice, whose rows are copied as fast."""


@defines("take", "as columns")
def take_as_columns(op: Take, x: Term) -> Term | None:
    """Of short rows along any axis: all that follows the axis is picked, number by number."""
    return _columns(x, op.axis, op.indices)


@defines("slice", "as columns")
def slice_as_columns(op: Slice, x: Term) -> Term | None:
    """Of few columns along the last axis."""
    if op.axis != x.type.rank - 1 or not isinstance(op.start, int) or not isinstance(op.stop, int):
        return None
    return _columns(x, op.axis, range(op.start, op.stop)) if op.stop - op.start <= FEW else None


@defines("every", "as columns")
def every_as_columns(op: Every, x: Term) -> Term | None:
    """Of short rows along any axis; where they are of a slice, of what that is cut from."""
    size, start, cut = x.shape[op.axis], 0, x.operator
    if not isinstance(size, int) or not isinstance(op.step, int):
        return None
    if isinstance(cut, Slice) and cut.axis == op.axis and isinstance(cut.start, int):
        (x,), start = x.inputs, cut.start
    return _columns(x, op.axis, range(start, start + size, op.step))


def _columns(x: Term, axis: int, places: Sequence[int]) -> Term | None:
    """The elements at some places along an axis, where few numbers stand in each."""
    width, size = product(x.shape[axis + 1 :]), x.shape[axis]
    if x.constant or x.type.dtype not in TYPES or not isinstance(width, int) or not isinstance(size, int):
        return None
    if width > SHORT or len(places) * width > MOST_PLACES:
        return None
    rows: Dim = product(x.shape[:axis])
    if is_one(rows):  # one row is taken by whatever kernel
        return None
    picked = [place * width + i for place in places for i in range(width)]
    y = Columns(tuple(picked))(x if axis == x.type.rank - 1 else reshaped(x, (rows, size * width)))
    return reshaped(y, (*x.shape[:axis], len(places), *x.shape[axis + 1 :]))


@defines("gather", "of numbers")
def of_numbers(op: Gather, x: Term, i: Term) -> Term | None:
    """Of a table of one number for each row: element by element."""
    if op.axis != 0 or x.type.dtype not in TYPES or not all(map(is_one, x.shape[1:])):
        return None
    count = product(i.shape)
    y = Elements(0)(reshaped(x, x.shape[:1]), reshaped(i, (count,)))
    return reshaped(y, (*i.shape, *x.shape[1:]))


@defines("gather", "along the last axis")
def along_the_last_axis(op: Gather, x: Term, i: Term) -> Term | None:
    """By places that are computed: the same for all rows, repeated for each."""
    before = x.shape[:-1]
    if op.axis != len(before) or not before or i.type.rank != 1 or x.type.dtype not in TYPES:
        return None
    to = (*before, *i.shape)
    return Elements(op.axis)(x, Expand((op.axis,), to)(i))
