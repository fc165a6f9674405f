"""Short rows that are repeated over many places, as a number for each of three channels is.

Runtimes repeat them slowly: onnxruntime 1.32 subtracts a row of three from each of 224 by 224 places in 0.39 ms, where
channels come first in 0.015, and in rows of 224 by three in 0.028. What is computed has to be written out for that: a
row for each of 1,024 groups of 16 by 4 numbers is added in 117 µs so, and in 30 where it is. And a number for each of
16,384 rows of 3 is multiplied in 112 µs, in 19 where a product with ones writes it out.
"""

from __future__ import annotations

import itertools

from superopt.dim import product
from superopt.operators.constant import filled
from superopt.operators.declared import Declared
from superopt.operators.element_types import FLOATS
from superopt.operators.layout import Expand, Transpose, reshaped
from superopt.operators.matmul import MatMul
from superopt.operators.meanings import defines
from superopt.operators.pointwise import Binary
from superopt.relations import is_one
from superopt.term import Term, make

SHORT = 16
"""From so many numbers in a row on, runtimes repeat it fast."""

LARGEST = 2**16
"""No more numbers than these are repeated as data."""

WORTH_WRITING = 32
"""Rows of no more numbers may be written out."""

WIDE, MOST = 2**7, 2**18
"""Numbers that are repeated along some of the last axes are data of at least so many, and of no more."""

LONGEST, MANY = 2**8, 2**8
"""A number is repeated by a product along rows of no more, and of no fewer: 4,096 of 64 in 10 µs for 107."""


@defines("transpose", "before short rows")
def before_short_rows(op: Transpose, x: Term) -> Term | None:
    """`transpose(f(x, rows)) = f(transpose(x), rows)`, for functions of each element of x alone and constant rows, of
    which one is short and repeated; the others are moved too.
    """
    function = x.operator
    if not isinstance(function, Declared) or not function.pointwise:
        return None
    running = [i for i in x.inputs if not i.constant]
    if len(running) != 1 or not any(i.constant and _is_short(i) for i in x.inputs):
        return None
    return make(function, tuple(_moved(op, i) if i.constant else op(i) for i in x.inputs))


@defines("add", "in longer rows")
@defines("sub", "in longer rows")
@defines("mul", "in longer rows")
@defines("div", "in longer rows")
def in_longer_rows(op: Binary, x: Term, y: Term) -> Term | None:
    """`f(x, rows)` in rows of several places, the short one repeated as data, or written out where it is computed; None
    where none is short.
    """
    if x.type.rank < 2 or (x.constant and y.constant) or not any(map(_is_short, (x, y))):
        return None
    places, size = x.shape[-2:]
    if not isinstance(places, int) or not isinstance(size, int) or places < 2:
        return None
    if (x.constant or y.constant) and places > LARGEST // size:
        return None
    longer = (*x.shape[:-2], places * size)

    def longer_of(term: Term) -> Term:
        if not (term.constant and _is_short(term)):
            return reshaped(term, longer)
        row = reshaped(Expand((1,), (places, size))(*term.inputs), (places * size,))
        return Expand((len(longer) - 1,), longer)(row)

    return reshaped(op(longer_of(x), longer_of(y)), x.shape)


@defines("add", "beside all of the last axes")
@defines("sub", "beside all of the last axes")
@defines("mul", "beside all of the last axes")
@defines("div", "beside all of the last axes")
def beside_all(op: Binary, x: Term, y: Term) -> Term | None:
    """`f(x, numbers)`, of constant numbers that are repeated along some of the last axes and short ones of these: as
    data of all these axes; None where there are no such. Points that are sampled in several levels are scaled so.
    """
    which = 0 if x.constant else 1
    numbers, other = (x, y)[which], (x, y)[1 - which]
    start = None if other.constant else _first_of_short(numbers)
    if start is None:
        return None
    own, repeat = x.shape[start:], numbers.operator
    assert isinstance(repeat, Expand)
    to = (*x.shape[:start], product(own))
    data = Expand(tuple(a - start for a in repeat.axes), own)(*numbers.inputs)
    row = Expand((start,), to)(reshaped(data, to[start:]))
    return reshaped(op(*((row, reshaped(y, to)) if which == 0 else (reshaped(x, to), row))), x.shape)


def _first_of_short(term: Term) -> int | None:
    """The first of the last axes over which constant numbers are to be data; None where they are not repeated along
    some of them, or over rows that are long.
    """
    repeat, rank = term.operator, term.type.rank
    if not term.constant or not isinstance(repeat, Expand) or repeat.axes in ((), (rank - 1,)):
        return None
    start = repeat.axes[0]
    alike = itertools.takewhile(lambda a: (a in repeat.axes) == (rank - 1 in repeat.axes), range(rank - 1, -1, -1))
    run, own = product([term.shape[a] for a in alike]), product(term.shape[start:])
    if not isinstance(run, int) or not isinstance(own, int) or run >= SHORT or own <= run:
        return None
    while start and own < WIDE and isinstance(term.shape[start - 1], int):
        start -= 1
        own = product(term.shape[start:])
    return start if isinstance(own, int) and own <= MOST else None


@defines("expand", "as a product with ones")
def as_a_product_with_ones(op: Expand, x: Term) -> Term | None:
    """A number for each of many short rows, times ones: exactly the number, along the row; None of all else."""
    *before, size = op.to or (1,)
    count = product(tuple(before))
    along = [axis for axis, places in enumerate(before) if axis in op.axes or not is_one(places)]
    if x.constant or x.type.dtype not in FLOATS or not before or op.axes != tuple(along) or not isinstance(size, int):
        return None
    if not 1 < size <= LONGEST or (isinstance(count, int) and count < MANY):
        return None
    return reshaped(MatMul()(reshaped(x, (count, 1)), filled(1.0, (1, size))), op.to)


def _is_short(term: Term) -> bool:
    """Whether a term repeats a short row over the places before it: a constant one over all, or one that is computed
    over those right before.
    """
    repeat, last = term.operator, term.type.rank - 1
    if not isinstance(repeat, Expand) or last not in repeat.axes:
        return False
    size = term.shape[last]
    if term.constant:
        return repeat.axes == (last,) and isinstance(size, int) and 1 < size < SHORT
    return last - 1 not in repeat.axes and isinstance(size, int) and 1 < size <= WORTH_WRITING


def _moved(op: Transpose, constant: Term) -> Term:
    """A constant transposed; what it repeats stays as small."""
    repeat = constant.operator
    if not isinstance(repeat, Expand):
        return op(constant)
    (base,) = constant.inputs
    places = [op.perm.index(axis) for axis in repeat.axes]
    if places != sorted(places):
        base = Transpose(tuple(sorted(range(len(places)), key=places.__getitem__)))(base)
    return Expand(tuple(sorted(places)), op.shape(constant.shape))(base)
