"""Values that are computed alike, computed side by side.

Queries and keys are products of one input, parted into heads and turned by the same angles: a dozen small operators
each, and the time of a small operator is that of its start. Of both, one value is computed of which they are slices.
Rules join two products; every operator after them would be a step uphill, since a slice moves behind one operator at a
time. So both are followed down to where they are the same, or constant, and joined at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import combinations, product
from typing import TypeAlias

from superopt.dim import Dim, assuming, equal
from superopt.errors import SuperoptError
from superopt.operators.along import origins, widened
from superopt.operators.declare import Declared
from superopt.operators.layout import Concat, Expand, Reshape, Slice
from superopt.term import Term, make

Pair: TypeAlias = "tuple[Term, Term, int]"
"""Two terms that may be joined, and the axis."""

Known: TypeAlias = "dict[Pair, Term | None]"
"""What was found of pairs so far."""


def abreast(groups: Iterable[Sequence[Term]], known: Known) -> Iterator[tuple[Term, Term, Term, Term]]:
    """Two terms of one of some groups that run, and the slices of one value that they are: where nothing that is
    computed of both is joined too.
    """
    found = [pair for group in groups for both in combinations(group, 2) if (pair := _both(*both, known)) is not None]
    below = {pair for one, other, *_ in found for pair in product(one.inputs, other.inputs)}
    for one, other, axis, made in found:
        if (one, other) not in below and (other, one) not in below:
            middle = one.shape[axis]
            with assuming():  # the sizes of both are within that of the sum
                parts = Slice(axis, 0, middle)(made), Slice(axis, middle, middle + other.shape[axis])(made)
            yield one, other, *parts


def _both(one: Term, other: Term, known: Known) -> tuple[Term, Term, int, Term] | None:
    """Two terms in an order and along an axis that they may be joined in, and joined so."""
    for first, second in ((one, other), (other, one)):
        for axis in _axes(first, second):
            made = joined(first, second, axis, known)
            if made is not None:
                return first, second, axis, made
    return None


def joined(one: Term, other: Term, axis: int, known: Known) -> Term | None:
    """Both terms, one after the other along an axis, as one value with no more operators than either has; None where
    they are not computed alike.
    """
    key = (one, other, axis)
    if key not in known:
        known[key] = None
        with suppress(SuperoptError), assuming() as conditions:  # that no tensor is empty may be assumed
            made = _joined(one, other, axis, known)
            known[key] = made if all(c.relation == "<=" for c in conditions) else None
    return known[key]


def _joined(one: Term, other: Term, axis: int, known: Known) -> Term | None:
    if isinstance(one.operator, Slice) and isinstance(other.operator, Slice):
        whole = _of_neighbours(one.operator, other.operator, axis, one.inputs[0], other.inputs[0])
        if whole is not None:
            return whole
    constant = one.constant and other.constant
    if _alike(one, other, axis) and (isinstance(one.operator, Expand) or not (one is other or constant)):
        assert isinstance(one.operator, Declared)
        size = one.shape[axis] + other.shape[axis]
        for found in origins(one.operator, axis, one.shape, [i.shape for i in one.inputs]):
            for theirs in dict.fromkeys((other.inputs, other.inputs[:: -1 if one.operator.commutative else 1])):
                inputs = _inputs(one.inputs, theirs, found, known)
                if inputs is not None:
                    return make(widened(one.operator, axis, size), inputs)
    return Concat(axis)(one, other) if constant else None


def _inputs(
    ones: Sequence[Term], others: Sequence[Term], axes: Sequence[int | None], known: Known
) -> list[Term] | None:
    """The inputs of both, joined or the same."""
    inputs = list[Term]()
    for a, b, axis in zip(ones, others, axes, strict=True):
        made = (a if a is b else None) if axis is None else joined(a, b, axis, known)
        if made is None:
            return None
        inputs.append(made)
    return inputs


def _of_neighbours(first: Slice, second: Slice, axis: int, x: Term, y: Term) -> Term | None:
    """What two slices next to each other are slices of."""
    if x is not y or (first.axis, second.axis) != (axis, axis) or not _same(first.stop, second.start):
        return None
    if _same(first.start, 0) and _same(second.stop, x.shape[axis]):
        return x
    return Slice(axis, first.start, second.stop)(x)


def _axes(one: Term, other: Term) -> Iterator[int]:
    """Along which axes terms may be joined, by their types: the one in which they differ, or any."""
    if one.type.dtype == other.type.dtype and one.type.rank == other.type.rank:
        unlike = [i for i, (a, b) in enumerate(zip(one.shape, other.shape, strict=True)) if not _same(a, b)]
        if len(unlike) < 2:
            axes = (a for a in unlike or range(one.type.rank) if _alike(one, other, a))
            # Parts of one value along that axis are joined already.
            yield from (a for a in axes if not (isinstance(one.operator, Slice) and one.operator.axis == a))


def _alike(one: Term, other: Term, axis: int) -> bool:
    """Whether both are one operator's, but for the size along an axis."""
    op, theirs = one.operator, other.operator
    if not isinstance(op, Declared) or type(op) is not type(theirs):
        return False
    if isinstance(op, Reshape | Expand):
        return widened(op, axis, 1) == widened(theirs, axis, 1)
    return op == theirs


def _same(a: Dim, b: Dim) -> bool:
    return equal(a, b) is True
