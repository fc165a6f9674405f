"""Values of which only some places are read: the others need not be computed.

Classifiers of text and of images look at one row of all that the last layer of a transformer gives, decoders at the
last step. What is picked out is picked before instead: a slice moves past one operator after the other, down to what
is read in full by something else that it needs, queries past keys and values. Each of these steps leaves more
operators where an operator has two inputs, so all are taken at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from superopt.dim import assuming
from superopt.errors import SuperoptError
from superopt.operators.along import Origins, read_along, widened
from superopt.operators.declare import Declared
from superopt.operators.layout import Every, Slice
from superopt.operators.rearrange import Take
from superopt.term import Term, make, subterms

PICKS = (Slice, Every, Take)
"""The operators that pick places out along one axis."""


class Picking:
    """Finds what is computed for nothing. What it found of terms is remembered."""

    def __init__(self) -> None:
        self._made: dict[Term, Term | None] = {}

    def forget_terms(self) -> None:
        """Forget what was remembered of terms."""
        self._made.clear()

    def of(self, term: Term) -> Term | None:
        """A pick with what is picked computed of fewer places; None where it is of no operator that allows that."""
        if not isinstance(term.operator, PICKS) or term.constant:
            return None
        if term not in self._made:
            self._made[term] = None
            with suppress(SuperoptError), assuming() as conditions:  # that no tensor is empty may be assumed
                made = _picked(term)
                self._made[term] = made if all(c.relation == "<=" for c in conditions) else None
        return self._made[term]


def _picked(term: Term) -> Term | None:
    pick, (x,) = term.operator, term.inputs
    assert isinstance(pick, PICKS)
    axes = _Axes()
    whole = {t for read in axes.read_whole(x, pick.axis) for t in subterms(read)}
    made = _Early(pick, axes, whole).of(x, pick.axis)
    return None if made.operator == pick and made.inputs == (x,) else made


class _Axes:
    """Along which axes terms are read for places along one of theirs."""

    def __init__(self) -> None:
        self._known: dict[tuple[Term, int], Origins | None] = {}

    def of(self, term: Term, axis: int) -> Origins | None:
        """None for what picks are not moved past: variables, and what computes no places apart."""
        if (term, axis) not in self._known:
            self._known[term, axis] = None if term.is_variable else read_along(term, axis)
        return self._known[term, axis]

    def read_whole(self, term: Term, axis: int) -> Iterator[Term]:
        """What places of a term along an axis need all of: where a pick has to stop, it reads everything."""
        seen, stack = set[tuple[Term, int]](), [(term, axis)]
        while stack:
            here = stack.pop()
            if here in seen:
                continue
            seen.add(here)
            one, along = here
            found = self.of(one, along)
            if found is None:
                yield one
                continue
            for i, a in zip(one.inputs, found, strict=True):
                if a is None:
                    yield i
                else:
                    stack.append((i, a))


class _Early:
    """Terms with places picked before they are computed; what is read whole is computed as it is, and picked then."""

    def __init__(self, pick: Slice | Every | Take, axes: _Axes, whole: set[Term]) -> None:
        self._pick, self._axes, self._whole = pick, axes, whole
        self._made: dict[tuple[Term, int], Term] = {}

    def of(self, term: Term, axis: int) -> Term:
        """What is picked of a term along an axis."""
        if (term, axis) not in self._made:
            self._made[term, axis] = self._of(term, axis)
        return self._made[term, axis]

    def _of(self, term: Term, axis: int) -> Term:
        late = replace(self._pick, axis=axis)(term)
        axes = self._axes.of(term, axis)
        if axes is None or term in self._whole:
            return late
        assert isinstance(term.operator, Declared)
        inputs = [i if a is None else self.of(i, a) for i, a in zip(term.inputs, axes, strict=True)]
        made = make(widened(term.operator, axis, late.shape[axis]), inputs)
        return made if made.type == late.type else late
