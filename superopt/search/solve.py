"""Searching all pieces of a model: equal pieces once, each for its share of the time, the best timed whole."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence

from superopt.errors import OutOfTime, SuperoptError
from superopt.search.found import INTERRUPTED, Limits, Solved, Strategy
from superopt.search.matching import Matching
from superopt.search.objective import Objective
from superopt.search.pieces import Piece
from superopt.search.remembered import Memory
from superopt.search.rewrites import Rewrite
from superopt.term import Term

Progress = Callable[[str, float], None]
"""Told what is being done, and how much of it is done (0 to 1)."""

JUDGING_RUNS = 80
"""How many times an inference could run, about, until a candidate is compared with its original and measured: three
runs of five inputs, two of them without the runtime's optimizations, then five pairs of sessions, run three times each.
"""

MUCH_WAITED = 0.1
"""Of a search that waited for this share of its time while others measured, it is not remembered that it found nothing.
"""


class TooShort(OutOfTime):
    """Whatever a search finds, no time would be left to judge it."""


def solve(
    groups: Mapping[tuple[Term, ...], Sequence[Piece]],
    known: Mapping[tuple[Term, ...], Solved],
    rewrites: Sequence[Rewrite],
    objective: Objective,
    strategy: Strategy,
    alpha: float,
    end: float,
    progress: Progress,
    memory: Memory | None = None,
) -> list[Solved]:
    """Search each distinct piece that is not known, and keep what was found; those that were done, where somebody
    interrupts it when something is gained already. `end` is when whole models have to be judged.

    Raises `OutOfTime` where nothing is known, and not even one piece could be costed before the cost's own deadline;
    `TooShort` where no time is left for a search after that.
    """
    matching, cost = Matching(rewrites), objective.machine
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
    judging_s = JUDGING_RUNS * objective.seconds(costs)
    cost.deadline = deadline = min(cost.deadline, end - judging_s)
    if starts and time.monotonic() >= deadline:
        if solved:
            return solved
        raise TooShort(f"comparing and measuring a candidate takes about {judging_s:.0f} s; allow more with --time")
    order = sorted(starts, key=lambda key: -starts[key])
    for i, key in enumerate(order):
        progress("search", i / len(order))
        # Time is shared by what is at stake; what earlier pieces leave goes to those that follow.
        share = starts[key] / (sum(starts[k] for k in order[i:]) or 1.0)
        limits = Limits(deadline=time.monotonic() + 0.8 * share * (deadline - time.monotonic()), alpha=alpha)
        deadly, waited_s, start = len(cost.deadly), cost.waited_s, time.monotonic()
        try:
            piece = unknown[key][0]
            outcome = strategy(piece.canonical, matching, objective.cost(piece.place), limits)
            winner, gain, untried = objective.choose(outcome, piece.place)
        except KeyboardInterrupt:
            return _kept(solved)
        solved.append(Solved(tuple(unknown[key]), outcome, winner, gain))
        if outcome.reason == INTERRUPTED:
            return _kept(solved)
        if memory and len(cost.deadly) == deadly:  # what failed may do better next time
            waited = cost.waited_s - waited_s > MUCH_WAITED * (time.monotonic() - start)
            memory.keep(solved[-1], whole=not untried, waited=waited)
    return solved


def _kept(solved: list[Solved]) -> list[Solved]:
    """What an interrupted search has. Raises `KeyboardInterrupt` where that is nothing."""
    if not any(s.gain > 1.0 for s in solved):
        raise KeyboardInterrupt
    return solved


def _start_costs(
    groups: Mapping[tuple[Term, ...], Sequence[Piece]], objective: Objective, progress: Progress
) -> dict[tuple[Term, ...], float]:
    """The costs of all places of each distinct piece, as far as the time allows to measure them.

    A piece that the runtime cannot run, or not at the sizes given, is left out. Raises `OutOfTime` where none is known.
    """
    starts: dict[tuple[Term, ...], float] = {}
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
