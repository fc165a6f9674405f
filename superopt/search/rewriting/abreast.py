"""Values that are computed alike, computed side by side.

Queries and keys are products of one input, parted into heads and turned by the same angles: a dozen small operators
each, and the time of a small operator is that of its start. Of both, one value is computed of which they are slices.
Rules join two products; every operator after them would be a step uphill, since a slice moves behind one operator at a
time. So both are followed down to where they are the same, or constant, and joined at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import combinations, product
from typing import TypeAlias

from superopt.demands import assuming
from superopt.errors import SuperoptError
from superopt.operators.along import origins, widened
from superopt.operators.declared import Declared
from superopt.operators.layout import Concat, Expand, Reshape
from superopt.operators.picks import Slice
from superopt.relations import are_equal
from superopt.term import Term, make

Pair: TypeAlias = "tuple[Term, Term, Term, Term]"
"""Two terms, and the slices of one value that they are."""


class Joining:
    """Finds what is computed alike. What it found of terms is remembered: most graphs share most of theirs."""

    def __init__(self) -> None:
        self._joined: dict[tuple[Term, Term, int], Term | None] = {}
        self._pairs: dict[tuple[Term, Term], Pair | None] = {}

    def forget_terms(self) -> None:
        """Forget what was remembered of terms."""
        self._joined.clear()
        self._pairs.clear()

    def pairs(self, groups: Iterable[Sequence[Term]], are_apart: Callable[[tuple[Term, Term]], bool]) -> list[Pair]:
        """Terms of one of some groups of terms that run, of which none is computed from the other: those of which
        nothing is computed that is joined too.
        """
        near = (both for group in groups for both in combinations(group, 2) if are_apart(both))
        found = [pair for both in near if (pair := self._pair(*both)) is not None]
        below = {pair for one, other, *_ in found for pair in product(one.inputs, other.inputs)}
        return [pair for pair in found if not {(pair[0], pair[1]), (pair[1], pair[0])} & below]

    def _pair(self, one: Term, other: Term) -> Pair | None:
        """Two terms in an order that they may be joined in, and their parts of the whole."""
        key = one, other
        if key not in self._pairs:
            ways = (
                (first, second, axis, made)
                for first, second in ((one, other), (other, one))
                for axis in _axes(first, second)
                if (made := self.joined(first, second, axis)) is not None
            )
            self._pairs[key] = next((_parted(*way) for way in ways), None)
        return self._pairs[key]

    def joined(self, one: Term, other: Term, axis: int) -> Term | None:
        """Both terms, one after the other along an axis, as one value with no more operators than either has; None
        where they are not computed alike.
        """
        key = one, other, axis
        if key not in self._joined:
            self._joined[key] = None
            alike = (one.constant and other.constant) or type(one.operator) is type(other.operator)
            if alike and one.type.rank == other.type.rank:  # reshapes to one rank may be of several
                with suppress(SuperoptError), assuming() as conditions:  # that no tensor is empty may be assumed
                    made = self._made(one, other, axis)
                    self._joined[key] = made if all(c.relation == "<=" for c in conditions) else None
        return self._joined[key]

    def _made(self, one: Term, other: Term, axis: int) -> Term | None:
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
                    inputs = self._inputs(one.inputs, theirs, found)
                    if inputs is not None:
                        return make(widened(one.operator, axis, size), inputs)
        return Concat(axis)(one, other) if constant else None

    def _inputs(self, ones: Sequence[Term], others: Sequence[Term], axes: Sequence[int | None]) -> list[Term] | None:
        """The inputs of both, joined or the same."""
        inputs = list[Term]()
        for a, b, axis in zip(ones, others, axes, strict=True):
            made = (a if a is b else None) if axis is None else self.joined(a, b, axis)
            if made is None:
                return None
            inputs.append(made)
        return inputs


def _parted(one: Term, other: Term, axis: int, whole: Term) -> Pair:
    """Two terms and their parts of the whole that they are joined to."""
    middle = one.shape[axis]
    with assuming():  # the sizes of both are within that of the sum
        return one, other, Slice(axis, 0, middle)(whole), Slice(axis, middle, middle + other.shape[axis])(whole)


def _of_neighbours(first: Slice, second: Slice, axis: int, x: Term, y: Term) -> Term | None:
    """What two slices next to each other are slices of."""
    if x is not y or (first.axis, second.axis) != (axis, axis) or not are_equal(first.stop, second.start):
        return None
    if are_equal(first.start, 0) and are_equal(second.stop, x.shape[axis]):
        return x
    return Slice(axis, first.start, second.stop)(x)


def _axes(one: Term, other: Term) -> Iterator[int]:
    """Along which axes terms may be joined, by their types: the one in which they differ, or any."""
    if one.type.dtype == other.type.dtype and one.type.rank == other.type.rank:
        unlike = [i for i, (a, b) in enumerate(zip(one.shape, other.shape, strict=True)) if not are_equal(a, b)]
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
        op, theirs = widened(op, axis, 1), widened(theirs, axis, 1)
    sizes, others = op.sizes(), theirs.sizes()
    # Operators whose sizes may be equal or not, as their symbols are, cannot be compared as a whole.
    return op.structure() == theirs.structure() and len(sizes) == len(others) and all(map(are_equal, sizes, others))
