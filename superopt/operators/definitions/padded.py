"""Products of rows or columns that zeros were put around: of what there was, by fewer rows of the other factor.

A long convolution is a product of spectra, and a signal is padded to twice its length before it is transformed (Hyena,
Poli et al. 2023): where the transform is a matrix, half of it meets zeros.
"""

from __future__ import annotations

from superopt.dim import Dim, Shape
from superopt.operators.layout import Expand
from superopt.operators.matmul import MatMul
from superopt.operators.meanings import defines
from superopt.operators.padding import Pad
from superopt.operators.picks import Slice
from superopt.relations import are_equal
from superopt.term import Term, make


@defines("matmul", "of padded rows")
def of_padded_rows(op: MatMul, x: Term, y: Term) -> Term | None:
    """`matmul(pad(x), y) = matmul(x, slice(y))`, where zeros stand before and behind each row alone."""
    last = x.type.rank - 1
    start = _zeros_before(x, last)
    return None if start is None else op(x.inputs[0], cut(y, last - 1, start, start + x.inputs[0].shape[last]))


@defines("matmul", "of padded columns")
def of_padded_columns(op: MatMul, x: Term, y: Term) -> Term | None:
    """`matmul(x, pad(y)) = matmul(slice(x), y)`, where zeros stand above and below each column alone."""
    above = y.type.rank - 2
    start = _zeros_before(y, above)
    return None if start is None else op(cut(x, above + 1, start, start + y.inputs[0].shape[above]), y.inputs[0])


def _zeros_before(term: Term, axis: int) -> Dim | None:
    """How many zeros were put before a value along an axis, where none were along others."""
    pad, rank = term.operator, term.type.rank
    if term.constant or not isinstance(pad, Pad):
        return None
    others = (w for at, w in enumerate(pad.pads) if at % rank != axis)
    return pad.pads[axis] if all(are_equal(w, 0) for w in others) else None


def cut(term: Term, axis: int, start: Dim, stop: Dim) -> Term:
    """A part of a factor; of a repeated one, what is repeated is cut."""
    repeat = term.operator
    if isinstance(repeat, Expand) and axis in repeat.axes:
        to: Shape = (*repeat.to[:axis], stop - start, *repeat.to[axis + 1 :])
        return Expand(repeat.axes, to)(make(Slice(repeat.axes.index(axis), start, stop), term.inputs))
    return make(Slice(axis, start, stop), (term,))
