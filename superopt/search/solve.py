"""Searching all pieces of a model: equal pieces once, each for its share of the time, the best timed whole."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TypeAlias

from superopt.cost.layouts import Place
from superopt.errors import OutOfTime, SuperoptError
from superopt.search.found import INTERRUPTED, Found, Limits, Outcome, Solved, Strategy, keep_also
from superopt.search.joined import Begun
from superopt.search.matching import Matching
from superopt.search.objective import Objective
from superopt.search.pieces import Piece
from superopt.search.refuted import refuted
from superopt.search.remembered import Memory
from superopt.search.solution import Terms

Groups: TypeAlias = Mapping[Terms, Sequence[Piece]]
"""The places of each distinct piece."""

Progress = Callable[[str, float], None]
"""Told what is being done, and how much of it is done (0 to 1)."""

JUDGING_RUNS = 92
"""How many times an inference could run, about, until a candidate is compared with its original and measured: three
runs of five inputs, two of them without the runtime's optimizations, then six pairs of sessions, each of them run four
times and more.
"""

MUCH_WAITED = 0.1
"""Of a search that waited for this share of its time while others measured, it is not remembered that it found nothing.
"""


JOINED_PATIENCE = 6
"""Of graphs of a joined piece, so many in a row gain nothing until a search of it ends: most of its gains were found
before, and another one is near the cut.
"""

JOINED_SHARE, JOINED_LEAST = 0.33, 0.05
"""What the searches of joined pieces may take: of the time that pieces took, or of the limit, where these are
remembered. What gains by sums is timed beyond that.
"""


DEFINITIONS_SHARE = 0.25
"""What a search by definitions alone may take of a piece's time: they are few, and it is mostly exhausted in less."""


CHOOSING_SHARE = 0.25
"""What timing graphs of a piece whole may take of its time, until one gains: the rest is for other pieces."""


class TooShort(OutOfTime):
    """Whatever a search finds, no time would be left to judge it."""


@dataclass
class Search:
    """How pieces are searched, and for what; the `memory` keeps what is found. It is `stopped` where somebody did."""

    matching: Matching
    objective: Objective
    strategy: Strategy
    alpha: float
    memory: Memory | None = None
    stopped: bool = False

    def __call__(self, places: Sequence[Piece], seconds: float, begun: Begun | None = None) -> Solved:
        """What a search of so many seconds finds for a piece that stands at these places, from what is begun, if
        anything is. Raises what costs do.
        """
        cost, start = self.objective.machine, time.monotonic()
        deadly, waited_s = len(cost.deadly), cost.waited_s
        limits = Limits(deadline=start + seconds, alpha=self.alpha)
        choosing_s = CHOOSING_SHARE * seconds
        if begun is None:
            solved, untried = self._alone(places, limits, choosing_s)
        else:
            solved, untried = self._across(places, limits, choosing_s, begun)
        if self.memory and len(cost.deadly) == deadly:  # what failed may do better next time
            waited = cost.waited_s - waited_s > MUCH_WAITED * (time.monotonic() - start)
            self.memory.keep(solved, whole=not untried, waited=waited)
        self.stopped |= solved.outcome.reason == INTERRUPTED
        return solved

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
        return Solved(tuple(places), outcome, winner, gain), untried

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


def solve(
    groups: Groups, known: Mapping[Terms, Solved], search: Search, end: float, progress: Progress
) -> list[Solved]:
    """Search each distinct piece that is not known; those that were done, where somebody interrupts it when something
    is gained already. `end` is when whole models have to be judged.

    Raises `OutOfTime` where nothing is known, and not even one piece could be costed before the cost's own deadline;
    `TooShort` where no time is left for a search after that.
    """
    objective, cost = search.objective, search.objective.machine
    solved = [known[key] for key in groups if key in known]
    unknown = {key: places for key, places in groups.items() if key not in known}
    try:
        starts = _start_costs(unknown, objective, progress)
    except OutOfTime:
        if not solved:
            raise
        return solved
    costs = [
        *starts.values(),
        *(len(known[key].places) * known[key].outcome.start.cost for key in groups if key in known),
    ]
    judging_s, searching_ends = JUDGING_RUNS * objective.seconds(costs), cost.deadline
    cost.deadline = deadline = min(searching_ends, end - judging_s)
    if starts and time.monotonic() >= deadline:
        if solved:
            return solved
        if time.monotonic() >= searching_ends:
            raise TooShort("timing its kernels took all the time that there is for a search; allow more with --time")
        raise TooShort(f"comparing and measuring a candidate takes about {judging_s:.0f} s; allow more with --time")
    for key, seconds in _shares(starts, deadline, progress, "search"):
        with search.stoppable():
            solved.append(search(unknown[key], seconds))
        if search.stopped:
            return kept(solved)
    return solved


def solve_joined(
    groups: Groups,
    known: Mapping[Terms, Solved],
    begun: Mapping[Terms, Begun],
    search: Search,
    deadline: float,
    progress: Progress,
) -> list[Solved]:
    """Search each distinct joined piece that is not known and that something is begun of, until the deadline."""
    total = search.objective.total
    solved = [known[key] for key in groups if key in known]
    starts = {key: len(groups[key]) * b.start(total) for key, b in begun.items() if key not in known}
    for key, seconds in _shares(starts, deadline, progress, "search across cuts"):
        if search.stopped:
            break
        if seconds <= 0.0:
            solved.append(begun[key].unsearched(groups[key], total))
            if search.memory:
                search.memory.keep(solved[-1])
            continue
        with search.stoppable(), suppress(SuperoptError):  # it cannot be run, or not in time
            solved.append(search(groups[key], seconds, begun[key]))
    return solved


def _shares(
    starts: Mapping[Terms, float], deadline: float, progress: Progress, doing: str
) -> Iterator[tuple[Terms, float]]:
    """The seconds for each: time is shared by what is at stake; what earlier ones leave goes to those that follow."""
    order = sorted(starts, key=lambda key: -starts[key])
    for i, key in enumerate(order):
        progress(doing, i / len(order))
        share = starts[key] / (sum(starts[k] for k in order[i:]) or 1.0)
        yield key, 0.8 * share * (deadline - time.monotonic())


def kept(solved: list[Solved]) -> list[Solved]:
    """What an interrupted search has. Raises `KeyboardInterrupt` where that is nothing."""
    if not any(s.gain > 1.0 for s in solved):
        raise KeyboardInterrupt
    return solved


def _start_costs(groups: Groups, objective: Objective, progress: Progress) -> dict[Terms, float]:
    """The costs of all places of each distinct piece, as far as the time allows to measure them.

    A piece that the runtime cannot run, or not at the sizes given, is left out. Raises `OutOfTime` where none is known.
    """
    starts: dict[Terms, float] = {}
    for i, (key, places) in enumerate(groups.items()):
        progress("measure kernels", i / len(groups))
        try:
            each = objective.cost(places[0].place).cost(places[0].canonical)
        except OutOfTime as error:
            if not starts:
                raise OutOfTime(
                    f"no piece of the model could be measured in time: {error}; allow more with --time"
                ) from None
            break
        except SuperoptError:
            continue
        if 0.0 < each < math.inf:
            starts[key] = len(places) * each
    return starts
