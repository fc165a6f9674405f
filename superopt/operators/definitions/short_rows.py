"""Short rows that are repeated over many places, as a number for each of three channels is.

Runtimes repeat them slowly: onnxruntime 1.32 subtracts a row of three from each of 224 by 224 places in 0.39 ms, where
channels come first in 0.015, and in rows of 224 by three in 0.028.
"""

from __future__ import annotations

from superopt.operators.declared import Declared
from superopt.operators.layout import Expand, Transpose, reshaped
from superopt.operators.meanings import defines
from superopt.operators.pointwise import Binary
from superopt.term import Term, make

SHORT = 16
"""From so many numbers in a row on, runtimes repeat it fast."""

LARGEST = 2**16
"""No more numbers than these are repeated as data."""


@defines("transpose", "before short rows")
def before_short_rows(op: Transpose, x: Term) -> Term | None:
    """`transpose(f(x, rows)) = f(transpose(x), rows)`, for functions of each element of x alone and constant rows, of
    which one is short and repeated; the others are moved too.
    """
    function = x.operator
    if not isinstance(function, Declared) or not function.pointwise:
        return None
    running = [i for i in x.inputs if not i.constant]
    if len(running) != 1 or not any(map(_is_short, x.inputs)):
        return None
    return make(function, tuple(_moved(op, i) if i.constant else op(i) for i in x.inputs))


@defines("add", "in longer rows")
@defines("sub", "in longer rows")
@defines("mul", "in longer rows")
@defines("div", "in longer rows")
def in_longer_rows(op: Binary, x: Term, y: Term) -> Term | None:
    """`f(x, rows)` in rows of several places, the short one repeated as data; None where none is short."""
    if x.type.rank < 2 or x.constant == y.constant or not any(map(_is_short, (x, y))):
        return None
    places, size = x.shape[-2:]
    if not isinstance(places, int) or not isinstance(size, int) or not 1 < places <= LARGEST // size:
        return None
    longer = (*x.shape[:-2], places * size)

    def longer_of(term: Term) -> Term:
        if not term.constant:
            return reshaped(term, longer)
        row = reshaped(Expand((1,), (places, size))(*term.inputs), (places * size,))
        return Expand((len(longer) - 1,), longer)(row)

    return reshaped(op(longer_of(x), longer_of(y)), x.shape)


def _is_short(term: Term) -> bool:
    """Whether a term repeats a short constant row over the places before it."""
    repeat = term.operator
    if not term.constant or not isinstance(repeat, Expand) or repeat.axes != (term.type.rank - 1,):
        return False
    size, *_ = term.inputs[0].shape
    return isinstance(size, int) and 1 < size < SHORT


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
