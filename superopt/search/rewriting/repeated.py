"""What is the same at all places along an axis, computed at one of them and repeated after that.

A feature of a whole cloud beside each of its points, one of a whole image beside each place, each of two things beside
all of the others: exporters repeat first, and what follows is computed as often. The counterpart of `picked.py`: where
an operator computes places along an axis apart, and all that it reads along it is repeated, so is what it gives.
"""

from __future__ import annotations

from collections.abc import Set

from superopt.dim import is_one
from superopt.operators.along import Origins, read_along, widened
from superopt.operators.declare import Declared
from superopt.operators.layout import Expand, reshaped
from superopt.search.rewriting.fewer import Fewer
from superopt.term import Term, make


class Repeating(Fewer):
    """Finds what is computed more often than once."""

    def may_be(self, term: Term) -> bool:
        """Whether it reads what is repeated."""
        return any(isinstance(i.operator, Expand) for i in term.inputs)

    def made(self, term: Term) -> Term | None:
        """A term as the repetition of what is computed once."""
        return _once(term)


def _once(term: Term) -> Term | None:
    op = term.operator
    if not isinstance(op, Declared) or isinstance(op, Expand):
        return None
    alike = {a: read for a in range(term.type.rank) if (read := _of_one(term, a)) is not None}
    if not alike:
        return None
    inputs = [_at_one(i, {read[n] for read in alike.values()}) for n, i in enumerate(term.inputs)]
    for a in alike:
        op = widened(op, a, 1)
    made = make(op, inputs)
    others = tuple(a for a in range(term.type.rank) if a not in alike)
    if not all(is_one(made.shape[a]) for a in alike):
        return None
    return Expand(others, term.shape)(reshaped(made, tuple(term.shape[a] for a in others)))


def _of_one(term: Term, axis: int) -> Origins | None:
    """Along which axes inputs are read for an axis along which all places are the same, as these are."""
    read = None if is_one(term.shape[axis]) else read_along(term, axis)
    if read is None or not any(a is not None for a in read):
        return None
    return read if all(a is None or _is_repeated(i, a) for i, a in zip(term.inputs, read, strict=True)) else None


def _is_repeated(term: Term, axis: int) -> bool:
    return isinstance(term.operator, Expand) and axis not in term.operator.axes and not is_one(term.shape[axis])


def _at_one(term: Term, along: Set[int | None]) -> Term:
    """A repetition without that along some axes, which are of one place then."""
    repeat = term.operator
    if along <= {None}:
        return term
    assert isinstance(repeat, Expand)
    to, (x,) = tuple(1 if a in along else d for a, d in enumerate(term.shape)), term.inputs
    whole = all(a in repeat.axes or is_one(d) for a, d in enumerate(to))
    return reshaped(x, to) if whole else Expand(repeat.axes, to)(x)
