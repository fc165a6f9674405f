"""Searching one piece: by all rewrites and by definitions alone, the best timed whole, what was found kept."""

from __future__ import annotations

import math
import time
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from superopt.cost.layouts import Place
from superopt.errors import OutOfTime
from superopt.search.alike import followed, structure
from superopt.search.found import (
    ALIKE,
    INTERRUPTED,
    Found,
    Limits,
    Outcome,
    Solved,
    Strategy,
    keep_also,
    measured,
)
from superopt.search.joined import Begun
from superopt.search.matching import Matching
from superopt.search.objective import Objective
from superopt.search.pieces import Piece
from superopt.search.refuted import refuted
from superopt.search.remembered import Memory

MUCH_WAITED = 0.1
"""Of a search that waited for this share of its time while others measured, it is not remembered that it found nothing.
"""


JOINED_PATIENCE = 6
"""Of graphs of a joined piece, so many in a row gain nothing until a search of it ends: most of its gains were found
before, and another one is near the cut.
"""

DEFINITIONS_SHARE = 0.25
"""What a search by definitions alone may take of a piece's time: they are few, and it is mostly exhausted in less."""

AS_GOOD = 0.5
"""What a piece gains at least by what was found for one that is alike, as a share of what that one gains (logarithms of
both), until all others had their turn.
"""

CHOOSING_SHARE = 0.25
"""What timing graphs of a piece whole may take of its time, until one gains: the rest is for other pieces."""


@dataclass
class Search:
    """How pieces are searched, and for what; the `memory` keeps what is found. It is `stopped` where somebody did."""

    matching: Matching
    objective: Objective
    strategy: Strategy
    alpha: float
    memory: Memory | None = None
    stopped: bool = False
    _gained: dict[Hashable, Solved] = field(default_factory=dict)
    """By structure the last of the pieces that were searched and gained."""

    def __call__(
        self, places: Sequence[Piece], seconds: float, begun: Begun | None = None, before: Solved | None = None
    ) -> Solved:
        """What a search of so many seconds finds for a piece that stands at these places, from what is begun, if
        anything is; or what was found `before`, where that gains no less. Raises what costs do.
        """
        cost, start = self.objective.machine, time.monotonic()
        deadly, waited_s = len(cost.deadly), cost.waited_s
        limits = Limits(deadline=start + seconds, alpha=self.alpha)
        choosing_s = CHOOSING_SHARE * seconds
        if begun is not None:
            solved, untried = self._across(places, limits, choosing_s, begun)
        else:
            has_gained = before is not None and before.gain > 1.0
            alike = None if has_gained else self._like(places, limits, choosing_s)
            solved, untried = alike or self._alone(places, limits, choosing_s)
        if before is not None and before.gain >= solved.gain:
            solved = replace(before, outcome=replace(solved.outcome, best=before.outcome.best))
        if self.memory and len(cost.deadly) == deadly:  # what failed may do better next time
            waited = cost.waited_s - waited_s > MUCH_WAITED * (time.monotonic() - start)
            self.memory.keep(solved, whole=not untried, waited=waited)
        self.stopped |= solved.outcome.reason == INTERRUPTED
        return solved

    def learn(self, solved: Solved) -> None:
        """Look for what gained in this piece first, in those that are alike."""
        if solved.gain > 1.0:
            self._gained[structure(solved.places[0].canonical.outputs)] = solved

    def _alone(self, places: Sequence[Piece], limits: Limits, choosing_s: float) -> tuple[Solved, int]:
        """What is found, and how many graphs could not be tried that were to be."""
        piece, objective = places[0], self.objective
        outcome = self._beside_definitions(piece, limits)
        winner, gain, untried = self._chosen(outcome, piece.place, limits, choosing_s)
        if objective.tries(outcome) and (ways := refuted(outcome, winner)):
            seen, before = outcome.seen, untried
            outcome = self.strategy(piece.canonical, self.matching.without(ways), objective.cost(piece.place), limits)
            outcome.seen += seen
            winner, gain, untried = self._chosen(outcome, piece.place, limits, choosing_s)
            untried += before  # what could not be timed is not remembered as refuted
        solved = Solved(tuple(places), outcome, winner, gain)
        self.learn(solved)
        return solved, untried

    def _like(self, places: Sequence[Piece], limits: Limits, choosing_s: float) -> tuple[Solved, int] | None:
        """What a piece gains by what was found for one that is alike; None where that is far less, or there is none."""
        graph, place = places[0].canonical, places[0].place
        if (other := self._gained.get(structure(graph.outputs))) is None:
            return None
        self.matching.forget_terms()
        same = followed(other.winner, other.places[0].canonical, graph, self.matching)
        try:
            cost = self.objective.cost(place)
            start = Found(graph, cost.cost(graph), (), measured=True)
            found = same and measured(same, cost, limits.alpha * start.cost)
        except OutOfTime:
            return None
        if found is None:
            return None
        outcome = Outcome(start, [found, start], 2, ALIKE)
        winner, gain, untried = self._chosen(outcome, place, limits, choosing_s)
        is_enough = gain > 1.0 and math.log(gain) >= AS_GOOD * math.log(other.gain)
        return (Solved(tuple(places), outcome, winner, gain), untried) if is_enough else None

    def _beside_definitions(self, piece: Piece, limits: Limits) -> Outcome:
        """What all rewrites find, and behind it what definitions alone do.

        Where the kernels of a rule take less by themselves than in their place, all of the cheapest graphs have it in
        them. So what there is without any rule may be timed too, and more rules seldom come to less.
        """
        cost, others = self.objective.cost(piece.place), None
        if (alone := self.matching.definitions) is not None:
            now = time.monotonic()
            share = replace(limits, deadline=now + DEFINITIONS_SHARE * (limits.deadline - now))
            others = self.strategy(piece.canonical, alone, cost, share)
            if others.reason == INTERRUPTED:
                return others
        outcome = self.strategy(piece.canonical, self.matching, cost, limits)
        if others is not None:
            outcome.seen += others.seen - 1  # both have the start
            keep_also(outcome, others.best, cost)
        return outcome

    def _across(self, places: Sequence[Piece], limits: Limits, choosing_s: float, begun: Begun) -> tuple[Solved, int]:
        """The same of a joined piece."""
        place, objective = places[0].place, self.objective
        limits = replace(limits, patience=JOINED_PATIENCE)
        tried = list(begun.tried(self.matching))
        outcome = self.strategy(begun.graph, self.matching, objective.cost(place), limits, tried)
        most = outcome.start.cost / objective.worth_trying
        outcome.best = [found for found in outcome.best if found.cost <= most] or [outcome.start]
        winner, gain, untried = self._chosen(outcome, place, limits, choosing_s)
        return begun.solved(places, outcome, winner, gain, objective.total), untried

    def _chosen(self, outcome: Outcome, place: Place, limits: Limits, choosing_s: float) -> tuple[Found, float, int]:
        """What the objective chooses, which hurries after so many seconds, or where the piece's time is over."""
        return self.objective.choose(outcome, place, min(limits.deadline, time.monotonic() + choosing_s))

    @contextmanager
    def stoppable(self) -> Iterator[None]:
        """Who interrupts what is done within stops the search, and gets what it has."""
        try:
            yield
        except KeyboardInterrupt:
            self.stopped = True
