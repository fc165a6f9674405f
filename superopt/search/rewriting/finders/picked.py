"""Values of which only some places are read: the others need not be computed.

Classifiers of text and of images look at one row of all that the last layer of a transformer gives, decoders at the
last step. What is picked out is picked before instead: a slice moves past one operator after the other, down to what
is read in full by something else that it needs, queries past keys and values. Each of these steps leaves more
operators where an operator has two inputs, so all are taken at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias

from superopt.operators.along import Origins, read_along, widened
from superopt.operators.declared import Declared
from superopt.operators.picks import Every, Slice, Take
from superopt.search.rewriting.finders.fewer import Fewer
from superopt.term import Term, make, subterms

PICKS = (Slice, Every, Take)
"""The operators that pick places out along one axis."""


Place: TypeAlias = "tuple[Term, int]"
"""A term, and an axis of it along which places are picked."""


class Picking(Fewer):
    """Finds what is computed of places that nobody reads."""

    name = "only what is read of it computed"
    heads = PICKS

    def made(self, term: Term) -> Term | None:
        """A pick with what is picked computed of fewer places."""
        return _picked(term)


def _picked(term: Term) -> Term | None:
    pick, (x,) = term.operator, term.inputs
    assert isinstance(pick, PICKS)
    axes = _reached(x, pick.axis)
    read = [one for (one, _), found in axes.items() if found is None]
    read += [i for (one, _), found in axes.items() for i, a in zip(one.inputs, found or (), strict=False) if a is None]
    whole = set(subterms(*read))
    made: dict[Place, Term] = {}
    order = {t: number for number, t in enumerate(subterms(x))}
    for here in sorted(axes, key=lambda place: order[place[0]]):
        late = replace(pick, axis=here[1])(here[0])
        made[here] = late if here[0] in whole else _early(here, late, axes[here] or (), made)
    return None if made[x, pick.axis] is term else made[x, pick.axis]


def _reached(term: Term, axis: int) -> dict[Place, Origins | None]:
    """Down from an axis of a term, along which axes terms are read for places along one of theirs: None for variables,
    and for what computes no places apart. There a pick has to stop, and reads all.
    """
    found: dict[Place, Origins | None] = {}
    stack = [(term, axis)]
    while stack:
        here = stack.pop()
        if here not in found:
            one, along = here
            found[here] = None if one.is_variable else read_along(one, along)
            stack += [(i, a) for i, a in zip(one.inputs, found[here] or (), strict=False) if a is not None]
    return found


def _early(here: Place, late: Term, read: Origins, made: Mapping[Place, Term]) -> Term:
    """A term at some of its places, computed of inputs at theirs; picked late where there is no such operator."""
    term, axis = here
    assert isinstance(term.operator, Declared)
    inputs = [i if a is None else made[i, a] for i, a in zip(term.inputs, read, strict=True)]
    early = make(widened(term.operator, axis, late.shape[axis]), inputs)
    return early if early.type == late.type else late
