"""Searching one piece: by all rewrites and by definitions alone, the best timed whole, what was found kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

from superopt.cost.layouts import Place
from superopt.errors import OutOfTime
from superopt.search.cutting.pieces import Piece
from superopt.search.objectives.objective import Objective
from superopt.search.objectives.promises import promise
from superopt.search.objectives.refuted import refuted
from superopt.search.rewriting.matching import Matching
from superopt.search.solving.following import Gained, followed, is_as_good, is_clear, is_enough
from superopt.search.solving.joined import Begun
from superopt.search.solving.remembered import Memory
from superopt.search.strategies.found import (
    ALIKE,
    INTERRUPTED,
    TOO_DEEP,
    Found,
    Limits,
    Outcome,
    Solved,
    Strategy,
    keep_also,
    measured,
)

MUCH_WAITED = 0.1
"""Of a search that waited for this share of its time while others measured, it is not remembered that it found nothing.
"""

JOINED_PATIENCE = 6
"""Of graphs of a joined piece, so many in a row gain nothing until a search of it ends: most of its gains were found
before, and another one is near the cut.
"""

DEFINITIONS_SHARE = 0.25
"""What a search by definitions alone may take of a piece's time: they are few, and it is mostly exhausted in less."""

LEARNED_SHARE = 0.25
"""The same of a search by rewrites that gained in other pieces."""

SPANNING_SHARE = 0.5
"""The same of what is found across many operators of a joined piece."""

CHOOSING_SHARE, LEFT_SHARE = 0.25, 0.5
"""What timing graphs of a piece whole may take of its time, until one gains, or of what its search left of that, where
this is more: the rest is for other pieces.
"""


@dataclass
class Search:
    """How pieces are searched, and for what; the `memory` keeps what is found, and what `gained` is looked for first in
    pieces that are alike. It is `stopped` where somebody did.
    """

    matching: Matching
    objective: Objective
    strategy: Strategy
    alpha: float
    memory: Memory | None = None
    stopped: bool = False
    gained: Gained = field(default_factory=Gained)

    def __call__(
        self, places: Sequence[Piece], seconds: float, begun: Begun | None = None, before: Solved | None = None
    ) -> Solved:
        """What a search of so many seconds finds for a piece that stands at these places, from what is begun, if
        anything is; or what was found `before`, where that gains no less. Raises what costs do.
        """
        limits = Limits(deadline=time.monotonic() + seconds, alpha=self.alpha)
        choosing_s = CHOOSING_SHARE * seconds

        def solve() -> Solved:
            try:
                if begun is not None:
                    return self._across(places, limits, choosing_s, begun)
                solved = self._beside_alike(places, limits, choosing_s, before)
                self.gained.learn(solved)
            except RecursionError:  # as in a sum of a thousand summands
                return self._left(places, begun, before)
            return solved

        return self._noted(solve)

    def with_more_timed(self, before: Solved, seconds: float) -> Solved:
        """A piece of which more graphs are timed whole, in so many seconds: those that were are known."""
        limits = Limits(deadline=time.monotonic() + seconds)

        def solve() -> Solved:
            outcome = replace(before.outcome, untried=0, promised=False)
            try:
                winner, gain = self._chosen(outcome, before.places[0].place, limits, seconds)
            except RecursionError:  # as one of them is too deep to be written
                return before
            is_better = gain >= before.gain or before.outcome.promised
            return replace(before, outcome=outcome, winner=winner, gain=gain) if is_better else before

        return self._noted(solve)

    def _noted(self, solve: Callable[[], Solved]) -> Solved:
        """What a piece comes to, which is remembered, but where something failed that may do better next time; whether
        somebody stopped that is noted.
        """
        cost, start = self.objective.machine, time.monotonic()
        deadly, waited_s = len(cost.alone.deadly), cost.bench.waited_s
        solved = solve()
        if self.memory and len(cost.alone.deadly) == deadly:
            waited = cost.bench.waited_s - waited_s > MUCH_WAITED * (time.monotonic() - start)
            self.memory.keep(solved, waited=waited)
        self.stopped |= solved.outcome.reason == INTERRUPTED
        return solved

    def _left(self, places: Sequence[Piece], begun: Begun | None, before: Solved | None) -> Solved:
        """A piece of which nothing more is found than was before."""
        if before is not None:
            return before
        if begun is not None:
            return begun.unsearched(places, self.objective.total, TOO_DEEP)
        graph = places[0].canonical
        start = Found(graph, self.objective.cost(places[0].place).cost(graph), (), measured=True)
        return Solved(tuple(places), Outcome(start, [start], 1, TOO_DEEP), start, 1.0)

    def _beside_alike(
        self, places: Sequence[Piece], limits: Limits, choosing_s: float, before: Solved | None
    ) -> Solved:
        """What was found for another piece that is alike, where it gains clearly there, about as much here, and nothing
        did before, or what gains clearly by rewrites that gained in others; else the best of these, of what its own
        search finds, and of what was found before.
        """
        known, other = before, self.gained.like(places[0])
        if other is not None and (before is None or before.outcome.reason != ALIKE):
            alike = self._like(other, places, limits, choosing_s)
            if is_enough(alike.gain, other.gain) and (before is None or before.gain <= 1.0):
                return alike if before is None else better(before, alike)
            known = alike if before is None else better(before, alike)
        if before is None and (learned := self._by_learned(places, limits, choosing_s)) is not None:
            known = learned if known is None else better(known, learned)
            if is_clear(learned.gain) or learned.outcome.reason == INTERRUPTED:
                return known
        own = self._alone(places, limits, choosing_s)
        return own if known is None else better(known, own)

    def _by_learned(self, places: Sequence[Piece], limits: Limits, choosing_s: float) -> Solved | None:
        """What a piece gains by rewrites alone that gained in others; None before enough did. They are few, so that is
        soon searched: in a tenth of the time of all rewrites it comes to the same, or nearly.
        """
        learned = self.matching.only(self.gained.ways)
        if learned is None:
            return None
        now, piece = time.monotonic(), places[0]
        share = replace(limits, deadline=now + LEARNED_SHARE * (limits.deadline - now))
        outcome = self.strategy(piece.canonical, learned, self.objective.cost(piece.place), share)
        winner, gain = self._chosen(outcome, piece.place, limits, choosing_s)
        solved = Solved(tuple(places), outcome, winner, gain)
        self.gained.learn(solved)
        return solved if outcome.reason == INTERRUPTED else replace(solved, outcome=replace(outcome, reason=ALIKE))

    def _alone(self, places: Sequence[Piece], limits: Limits, choosing_s: float) -> Solved:
        """What is found."""
        piece, objective = places[0], self.objective
        outcome = self._beside_definitions(piece, limits)
        winner, gain = self._chosen(outcome, piece.place, limits, choosing_s)
        if objective.tries(outcome) and (ways := refuted(outcome, winner)):
            before = outcome
            outcome = self.strategy(piece.canonical, self.matching.without(ways), objective.cost(piece.place), limits)
            outcome.seen += before.seen
            outcome.lost += before.untried  # what could not be timed is not remembered as refuted
            winner, gain = self._chosen(outcome, piece.place, limits, choosing_s)
        return Solved(tuple(places), outcome, winner, gain)

    def _like(self, other: Solved, places: Sequence[Piece], limits: Limits, choosing_s: float) -> Solved:
        """What a piece gains by what was found for another that is alike: nothing, where that does not apply to it. It
        is timed, until others of the kind that were tell the gain.
        """
        graph, place = places[0].canonical, places[0].place
        cost = self.objective.cost(place)
        start = Found(graph, cost.cost(graph), (), measured=True)
        outcome = Outcome(start, [start], 1, ALIKE)
        self.matching.forget_terms()
        same = followed(other.winner, other.places[0].canonical, graph, self.matching)
        with suppress(OutOfTime):
            if same is not None and (found := measured(same, cost, limits.alpha * start.cost)) is not None:
                outcome.seen, outcome.best = 2, [found, start]
        promised, timed = promise(start, outcome.best[0]), self.objective.times_whole and self.objective.tries(outcome)
        expected = self.gained.expected(places[0], promised) if timed else None
        if expected is not None and is_as_good(expected, other.gain):
            return Solved(tuple(places), outcome, outcome.best[0], expected)
        winner, gain = self._chosen(outcome, place, limits, choosing_s)
        if timed and not outcome.untried:
            self.gained.tell(places[0], promised, gain)
        return Solved(tuple(places), outcome, winner, gain)

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

    def _across(self, places: Sequence[Piece], limits: Limits, choosing_s: float, begun: Begun) -> Solved:
        """The same of a joined piece."""
        place, objective = places[0].place, self.objective
        limits = replace(limits, patience=JOINED_PATIENCE)
        spanning = self._spanning(places, limits, choosing_s, begun)
        if spanning is not None and spanning.outcome.reason == INTERRUPTED:
            return spanning
        tried = list(begun.tried(self.matching))
        outcome = self.strategy(begun.graph, self.matching, objective.cost(place), limits, tried)
        most = outcome.start.cost / objective.worth_trying
        outcome.best = [found for found in outcome.best if found.cost <= most] or [outcome.start]
        winner, gain = self._chosen(outcome, place, limits, choosing_s)
        found = begun.solved(places, outcome, winner, gain, objective.total)
        return found if spanning is None else better(spanning, found)

    def _spanning(self, places: Sequence[Piece], limits: Limits, choosing_s: float, begun: Begun) -> Solved | None:
        """What is found across many operators of a joined piece as it stands, where that spans its parts, and by sums
        gains more than these do: what was found for the parts may stand in its way.
        """
        finders, piece, now = self.matching.finders, places[0], time.monotonic()
        if finders is None or not begun.spans(finders):
            return None
        share = replace(limits, deadline=now + SPANNING_SHARE * (limits.deadline - now))
        outcome = self.strategy(piece.canonical, finders, self.objective.cost(piece.place), share)
        most = outcome.start.cost / begun.gain(self.objective.total)
        outcome.best = [found for found in outcome.best if found.cost < most] or [outcome.start]
        if not self.objective.tries(outcome):
            return None
        winner, gain = self._chosen(outcome, piece.place, limits, choosing_s)
        return Solved(tuple(places), outcome, winner, gain)

    def _chosen(self, outcome: Outcome, place: Place, limits: Limits, choosing_s: float) -> tuple[Found, float]:
        """What the objective chooses, which hurries after so many seconds, or where the piece's time is over."""
        now = time.monotonic()
        until = min(limits.deadline, now + max(choosing_s, LEFT_SHARE * (limits.deadline - now)))
        winner, gain, untried = self.objective.choose(outcome, place, until)
        outcome.untried += untried
        return winner, gain

    @contextmanager
    def stoppable(self) -> Iterator[None]:
        """Who interrupts what is done within stops the search, and gets what it has."""
        try:
            yield
        except KeyboardInterrupt:
            self.stopped = True


def better(before: Solved, after: Solved) -> Solved:
    """What gains more of what two searches of a piece found, by what was timed rather than promised, the first where
    both gain as much; as the second ended.
    """
    first, second = ((s.gain > 1.0 and not s.outcome.promised, s.gain) for s in (before, after))
    one, other = (before, after) if first >= second and before.gain > 1.0 else (after, before)
    ended = replace(one.outcome, reason=after.outcome.reason, candidates=after.outcome.candidates)
    ended.seen = before.outcome.seen + after.outcome.seen - 1  # both have the start
    ended.lost += other.outcome.untried + other.outcome.lost
    return replace(one, outcome=ended)


def kept(solved: list[Solved]) -> list[Solved]:
    """What an interrupted search has. Raises `KeyboardInterrupt` where that is nothing."""
    if not any(s.gain > 1.0 for s in solved):
        raise KeyboardInterrupt
    return solved
