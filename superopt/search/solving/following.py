"""Pieces that are alike but for sizes and attributes: what was found for one is looked for in the others first.

The blocks of a network differ by their channels and by the size of their images: of DenseNet's 60 pieces 52 are of one
structure. The rewrites that led to a graph of one of them, followed in another, come to the same graph in a tenth of
the time of a search, where they apply there; and whether it gains there too is timed as ever. Where that came to
what sums of kernels promise a few times, it need not be timed again: that takes most of what following does.

Pieces of other structures mostly gain by the same rewrites, in another order or at other places. So once some gained,
further ones are first searched by what these gained by, a dozen rewrites of thousands.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from operator import itemgetter

from superopt.errors import SuperoptError
from superopt.search.cutting.pieces import Piece
from superopt.search.rewriting.application import Application
from superopt.search.rewriting.empties import refusing
from superopt.search.rewriting.matching import Matching
from superopt.search.strategies.found import ALIKE, Applied, Found, Solved
from superopt.search.strategies.space import applied
from superopt.term import Graph, Term, running

AS_GOOD = 0.5
"""What gains at least this share of another gain (of their logarithms) is as good, until all pieces had their turn."""

CLEAR = 1.1
"""A smaller gain says nothing of what there is to find in others: of blocks that gain 1.04 at 116 channels, which are
as many as fill vectors, those of 58 gain 1.4.
"""

LEARNED = 3
"""So many pieces have to gain by searches of their own until what they gained by is searched first in further ones."""

TOLD = 3
"""Of so many pieces that followed another their gains tell those of further ones, by what sums promise."""


class Gained:
    """The pieces that were searched and gained, by structure: of each the last that was about as good as the best; and
    what came of it in others.
    """

    def __init__(self) -> None:
        self._found: dict[Hashable, Solved] = {}
        self._most: dict[Hashable, float] = {}
        self._told: dict[Hashable, list[tuple[float, float]]] = {}
        self._ways: list[frozenset[str]] = []

    def learn(self, solved: Solved) -> None:
        """Note a piece that gained by rewrites of its own, as it was timed."""
        start = solved.places[0].canonical.outputs
        is_own = solved.outcome.reason != ALIKE and not solved.outcome.promised
        if solved.gain <= 1.0 or solved.winner.graph.outputs == start or not is_own:
            return
        self._ways.append(frozenset(step.name for step in solved.winner.steps))
        form = structure(start)
        most = self._most[form] = max(self._most.get(form, 1.0), solved.gain)
        if is_as_good(solved.gain, most):
            self._found[form] = solved

    @property
    def ways(self) -> frozenset[str]:
        """The names of the rewrites by which pieces gained; none before enough of them did."""
        return frozenset().union(*self._ways) if len(self._ways) >= LEARNED else frozenset()

    def like(self, piece: Piece) -> Solved | None:
        """Another piece of the same structure, if one has gained."""
        found = self._found.get(structure(piece.canonical.outputs))
        return None if found is None or found.places[0] is piece else found

    def tell(self, piece: Piece, promised: float, gain: float) -> None:
        """Note what came of following another: what sums promised, and what it gained when it was timed."""
        self._told.setdefault(structure(piece.canonical.outputs), []).append((promised, gain))

    def expected(self, piece: Piece, promised: float) -> float | None:
        """What a piece may be taken to gain of which sums promise so much, but for what promises of its kind came to;
        None before enough of these were timed.
        """
        told = self._told.get(structure(piece.canonical.outputs), [])
        logs = [sum(map(math.log, each)) for each in zip(*told, strict=True)]
        if len(told) < TOLD or logs[0] <= 0.0 or promised <= 1.0:
            return None
        return float(promised ** min(max(logs[1] / logs[0], 0.0), 1.0))


def is_as_good(gain: float, other: float) -> bool:
    """Whether there is a gain, and it is about as good as another one."""
    return gain > 1.0 and math.log(gain) >= AS_GOOD * math.log(other)


def is_clear(gain: float) -> bool:
    """Whether a gain says something of pieces that are alike."""
    return gain >= CLEAR


def is_enough(gain: float, other: float) -> bool:
    """Whether nobody looks further where another gain, that is followed, comes to this one."""
    return is_clear(other) and is_as_good(gain, other)


def structure(roots: Sequence[Term]) -> Hashable:
    """What is equal for terms that are alike: operators by name, and where they take their inputs from; of inputs and
    constants the type but for the sizes. Equal constants are one term, so how they are made depends on sizes.
    """
    places: dict[Term, int] = {}
    lines: list[Hashable] = []
    for term in running(*roots):
        lines.append((term.operator.name, *(_place(i, places, lines) for i in term.inputs)))
        places[term] = len(places)
    return tuple(lines), tuple(_place(r, places, lines) for r in roots)


def _place(term: Term, places: dict[Term, int], lines: list[Hashable]) -> Hashable:
    """Where a term stands, which from now on has a place where it is an input; of a constant what it is."""
    if term.constant:
        return term.type.dtype, term.type.rank
    if term not in places:
        places[term] = len(places)
        lines.append((term.type.dtype, term.type.rank))
    return places[term]


def followed(found: Found, start: Graph, other: Graph, matching: Matching) -> Found | None:
    """What the steps that led from a start to what was found make of another graph that is alike; None where one of
    them does not apply there, or comes to something else.
    """
    before, after, left, steps = start, other, list(found.steps), list[Applied]()
    narrow, narrow_after = dict[Term, Term](), dict[Term, Term]()
    while left:
        application = _as(left, before, after, matching)
        if application is None:
            return None
        taken = left[: len(application.roots)]
        rewrite = application.template.rewrite
        try:
            before = applied(before, {step.before: step.after for step in taken}, narrow)
            after = applied(after, application.new, narrow_after)
        except SuperoptError:
            return None
        steps += [Applied(rewrite.name, rewrite.known, rewrite.by, old, new) for old, new in application.new.items()]
        del left[: len(taken)]
    if refusing(after.runs) and not refusing(other.runs):
        return None
    return Found(after, found.cost, tuple(steps))


def _as(steps: Sequence[Applied], before: Graph, after: Graph, matching: Matching) -> Application | None:
    """What does in one graph what the next of the steps did in the one before; of several the most like it."""
    if structure(before.outputs) != structure(after.outputs):
        return None
    there = dict(zip(before.runs, after.runs, strict=True))
    root = there.get(steps[0].before)
    if root is None:
        return None
    alone = _most_like(steps, there, matching.at(root))
    return alone or _most_like(steps, there, (a for a in matching.applications(after) if len(a.roots) > 1))


def _most_like(
    steps: Sequence[Applied], there: dict[Term, Term], applications: Iterable[Application]
) -> Application | None:
    """Of applications of the next step's rewrite the one that is most like it, if any is."""
    found = [a for a in applications if a.template.rewrite.name == steps[0].name]
    alike = [(same, a) for a in found if (same := _likeness(steps, there, a)) is not None]
    return max(alike, key=itemgetter(0))[1] if alike else None


def _likeness(steps: Sequence[Applied], there: dict[Term, Term], application: Application) -> int | None:
    """How many operators an application brings in that the steps brought in as well; None where it does otherwise."""
    taken = steps[: len(application.roots)]
    if tuple(there.get(step.before) for step in taken) != application.roots:
        return None
    own, other = [step.after for step in taken], [application.new[root] for root in application.roots]
    if structure(own) != structure(other):
        return None
    both = zip(running(*own), running(*other), strict=True)
    return sum(str(a.operator) == str(b.operator) for a, b in both)  # whether symbols are equal may be open
