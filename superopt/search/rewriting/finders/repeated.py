"""What is the same at all places along an axis, computed at one of them and repeated after that.

A feature of a whole cloud beside each of its points, one of a whole image beside each place, each of two things beside
all of the others: exporters repeat first, and what follows is computed as often. The counterpart of `picked.py`: where
an operator computes places along an axis apart, and all that it reads along it is repeated, so is what it gives.

Where a reshape has merged the repeated axis with another, of each of several things beside each of others, the merged
axis is as long as what of it differs: that is computed, and what comes out is repeated, and merged again.
"""

from __future__ import annotations

from collections.abc import Set
from typing import NamedTuple

from superopt.dim import Shape, product
from superopt.operators.along import Origins, read_along, widened
from superopt.operators.declared import Declared
from superopt.operators.layout import Expand, Reshape, reshaped
from superopt.relations import are_equal, equal_shapes, is_one
from superopt.search.rewriting.finders.fewer import Fewer
from superopt.term import Term, make


class Repeating(Fewer):
    """Finds what is computed more often than once."""

    name = "what is repeated computed once"

    def may_be(self, term: Term) -> bool:
        """Whether it reads what is repeated."""
        return any(isinstance(i.operator, Expand) or _is_merged(i) for i in term.inputs)

    def made(self, term: Term) -> Term | None:
        """A term as the repetition of what is computed once."""
        return _once(term) or _once_merged(term)


def _once(term: Term) -> Term | None:
    op = term.operator
    if not isinstance(op, Declared) or isinstance(op, Expand):
        return None
    if op.pointwise and not all(isinstance(i.operator, Expand) for i in term.inputs):
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


class Merged(NamedTuple):
    """The axes of a repetition that a reshape merges into one, without those of one place, and which are repeated."""

    axes: tuple[int, ...]
    sizes: Shape
    alike: tuple[bool, ...]


def _once_merged(term: Term) -> Term | None:
    """A term of which places along one axis are the same, where that was merged with another."""
    op = term.operator
    if not isinstance(op, Declared) or isinstance(op, Expand | Reshape) or not any(map(_is_merged, term.inputs)):
        return None
    for axis in range(term.type.rank):
        read = read_along(term, axis)
        merged = None if read is None else _all_merged(term, read)
        if read is not None and merged is not None:
            return _repeated_after(term, op, axis, read, merged)
    return None


def _is_merged(term: Term) -> bool:
    return isinstance(term.operator, Reshape) and isinstance(term.inputs[0].operator, Expand)


def _all_merged(term: Term, read: Origins) -> Merged | None:
    """What all that is read along these axes repeats in the same way, where a reshape has merged any of it."""
    found: Merged | None = None
    for i, a in zip(term.inputs, read, strict=True):
        if a is None or _is_repeated(i, a):
            continue
        merged = _merged(i, a)
        if merged is None or (found is not None and not equal_shapes(merged.sizes, found.sizes)):
            return None
        before = merged.alike if found is None else found.alike
        found = merged._replace(alike=tuple(one and other for one, other in zip(merged.alike, before, strict=True)))
    return found if found is not None and any(found.alike) else None


def _merged(term: Term, axis: int) -> Merged | None:
    """The axes of a repetition that an axis of its reshape is made of: as many elements stand before them."""
    if not _is_merged(term):
        return None
    repeat, shape = term.inputs[0].operator, term.inputs[0].shape
    assert isinstance(repeat, Expand)
    places = range(len(shape) + 1)
    first = next((n for n in places if are_equal(product(shape[:n]), product(term.shape[:axis]))), None)
    if first is None:
        return None
    end = next((n for n in places[first:] if are_equal(product(shape[first:n]), term.shape[axis])), None)
    if end is None:
        return None
    axes = tuple(a for a in range(first, end) if not is_one(shape[a]))
    return Merged(axes, tuple(shape[a] for a in axes), tuple(a not in repeat.axes for a in axes))


def _repeated_after(term: Term, op: Declared, axis: int, read: Origins, merged: Merged) -> Term | None:
    """The repetition, merged, of an operator computed of what differs along an axis."""
    left = tuple(d for d, alike in zip(merged.sizes, merged.alike, strict=True) if not alike)
    inputs = [i if a is None else _of_differing(i, a, merged, left) for i, a in zip(term.inputs, read, strict=True)]
    made = make(widened(op, axis, product(left)), inputs)
    before, after = term.shape[:axis], term.shape[axis + 1 :]
    if not equal_shapes(made.shape, (*before, product(left), *after)):
        return None
    to = (*before, *merged.sizes, *after)
    others = tuple(a for a in range(len(to)) if a not in {axis + n for n, alike in enumerate(merged.alike) if alike})
    return reshaped(Expand(others, to)(reshaped(made, (*before, *left, *after))), term.shape)


def _of_differing(term: Term, axis: int, merged: Merged, left: Shape) -> Term:
    """An input, along an axis as long as what differs."""
    to = (*term.shape[:axis], product(left), *term.shape[axis + 1 :])
    own = _merged(term, axis)
    if own is None:
        repeat = term.operator
        assert isinstance(repeat, Expand)
        return Expand(repeat.axes, to)(*term.inputs) if left else _at_one(term, {axis})
    return reshaped(_at_one(term.inputs[0], {a for a, same in zip(own.axes, merged.alike, strict=True) if same}), to)
