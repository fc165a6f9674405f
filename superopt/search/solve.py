"""Searching all pieces of a model: equal pieces once, each for its share of the time, the best timed whole."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence

from superopt.cost.layouts import Place, between
from superopt.cost.measured import CostInPlace, MeasuredCost
from superopt.errors import OutOfTime, SuperoptError
from superopt.search.found import INTERRUPTED, Found, Limits, Outcome, Solved, Strategy
from superopt.search.matching import Matching
from superopt.search.pieces import Piece
from superopt.search.remembered import Memory
from superopt.search.rewrites import Rewrite
from superopt.term import Graph, Term

Progress = Callable[[str, float], None]
"""Told what is being done, and how much of it is done (0 to 1)."""

WORTH_TIMING = 0.99
"""A graph is timed whole where its predicted cost is below this share of the original's."""


WORTH_KEEPING = 1.03
"""A graph replaces its piece where it was measured to gain at least this: less is noise."""

LEAST_LEFT = 0.01
"""Of what the start takes, what is left at least: sums and whole times miss each other by a few per cent."""

LARGE_WEIGHTS, WORTH_UNTIMED = 2**24, 1.2
"""A piece with more numbers in its weights is not timed whole, for the memory of two sessions of it, and their time.
It is replaced where its sum promises at least this, and the whole model decides."""

MUCH_WAITED = 0.1
"""Of a search that waited for this share of its time while others measured, it is not remembered that it found nothing.
"""

AS_PROMISED = 0.95
"""A whole graph that reaches this share of its predicted gain is taken without trying others."""


def solve(
    groups: Mapping[tuple[Term, ...], Sequence[Piece]],
    known: Mapping[tuple[Term, ...], Solved],
    rewrites: Sequence[Rewrite],
    cost: MeasuredCost,
    strategy: Strategy,
    alpha: float,
    deadline: float,
    progress: Progress,
    memory: Memory | None = None,
) -> list[Solved]:
    """Search each distinct piece that is not known, and keep what was found; those that were done, where somebody
    interrupts it when something is gained already.

    Raises `OutOfTime` where nothing is known, and not even one piece could be costed before the deadline.
    """
    matching = Matching(rewrites)
    solved = [known[key] for key in groups if key in known]
    unknown = {key: places for key, places in groups.items() if key not in known}
    try:
        starts = _start_costs(unknown, cost, progress)
    except OutOfTime:
        if not solved:
            raise
        return solved
    order = sorted(starts, key=lambda key: -starts[key])
    for i, key in enumerate(order):
        progress("search", i / len(order))
        # Time is shared by what is at stake; what earlier pieces leave goes to those that follow.
        share = starts[key] / (sum(starts[k] for k in order[i:]) or 1.0)
        limits = Limits(deadline=time.monotonic() + 0.8 * share * (deadline - time.monotonic()), alpha=alpha)
        deadly, waited_s, start = len(cost.deadly), cost.waited_s, time.monotonic()
        try:
            piece = unknown[key][0]
            outcome = strategy(piece.canonical, matching, CostInPlace(cost, piece.place), limits)
            winner, gain, untried = _best_in_context(outcome, cost, piece.place)
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
    groups: Mapping[tuple[Term, ...], Sequence[Piece]], cost: MeasuredCost, progress: Progress
) -> dict[tuple[Term, ...], float]:
    """The predicted seconds of all places of each distinct piece, as far as the time allows to measure them.

    A piece that the runtime cannot run, or not at the sizes given, is left out. Raises `OutOfTime` where none is known.
    """
    starts: dict[tuple[Term, ...], float] = {}
    for i, (key, places) in enumerate(groups.items()):
        progress("measure kernels", i / len(groups))
        try:
            seconds = len(places) * cost.cost(places[0].canonical, place=places[0].place)
        except OutOfTime as error:
            if not starts:
                raise OutOfTime(
                    f"no piece of the model could be measured in time: {error}; allow more with --time"
                ) from None
            break
        except SuperoptError:
            continue
        if math.isfinite(seconds):
            starts[key] = seconds
    return starts


def _best_in_context(outcome: Outcome, cost: MeasuredCost, place: Place) -> tuple[Found, float, int]:
    """Of the cheapest graphs by sums of kernels, one that is faster as a whole; the start where none is.

    The first that gains nearly what its sum promised is taken; else the one that gains most. Its gain stands beside it,
    and how many graphs could not be timed.
    """
    best, gain, untried = outcome.start, 1.0, 0
    if _weights(outcome.start.graph) > LARGE_WEIGHTS:
        promised = outcome.start.cost / outcome.best[0].cost
        return (outcome.best[0], promised, 0) if promised >= WORTH_UNTIMED else (best, gain, 0)
    for found in outcome.best:
        if found is outcome.start or found.cost >= WORTH_TIMING * outcome.start.cost:
            continue
        try:
            ratio = _gain(outcome.start, found, cost, place)
        except SuperoptError:  # it cannot be written or run as a whole, or no time is left
            untried += 1
            continue
        if ratio > max(gain, WORTH_KEEPING):
            best, gain = found, ratio
        if best is found and ratio >= AS_PROMISED * outcome.start.cost / found.cost:
            break
    return best, gain, untried


def _gain(start: Found, found: Found, cost: MeasuredCost, place: Place) -> float:
    """How many times faster a graph is than the start, each timed whole in its place.

    What stands around it is in both times, so their difference is compared with what the start takes alone. Raises what
    `MeasuredCost.whole` does.
    """
    before, after = (between(graph, place) for graph in (start.graph, found.graph))
    before_s, after_s = cost.whole(before, after)
    return start.cost / max(start.cost - (before_s - after_s), LEAST_LEFT * start.cost)


def _weights(graph: Graph) -> int:
    """How many numbers the constants of a graph hold; symbolic sizes count as one."""
    shapes = [[d for d in v.shape if isinstance(d, int)] for v in graph.inputs if v.constant]
    return sum(math.prod(shape) for shape in shapes)
