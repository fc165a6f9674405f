"""Cost-based backtracking (TASO, SOSP 2019): always rewrite the cheapest graph not yet rewritten, and keep what costs
less than α times the best.

Costs are estimated until a graph's turn comes; only then its kernels are measured. So thousands of graphs are looked
at, and what is measured is what may win.
"""

from __future__ import annotations

import heapq
import itertools
import time

from superopt.cost.model import Cost
from superopt.errors import OutOfTime
from superopt.search.found import INTERRUPTED, TOLD_APART, Found, Limits, Outcome, keep, measured, priority
from superopt.search.matching import Matching
from superopt.search.space import Space
from superopt.term import Graph


def backtrack(graph: Graph, matching: Matching, cost: Cost, limits: Limits) -> Outcome:
    """Search from a graph. Raises `OutOfTime` only where not even the start could be costed."""
    start = Found(graph, cost.cost(graph), (), measured=True)
    outcome, space = Outcome(start, [start], 1), Space(graph, matching, cost)
    try:
        _explore(outcome, space, cost, limits)
    except KeyboardInterrupt:
        outcome.reason = INTERRUPTED
    outcome.seen = space.seen
    return outcome


def _explore(outcome: Outcome, space: Space, cost: Cost, limits: Limits) -> None:
    start, order = outcome.start, itertools.count()
    queue: list[tuple[float, int, Found]] = []

    def enter(found: Found) -> None:
        heapq.heappush(queue, (priority(found, start), -next(order), found))

    best, vain, expanded = start.cost, 0, 0
    for found in (start, *space.simplified(start)):
        enter(found)
    while queue:
        if time.monotonic() > limits.deadline:
            outcome.reason = "out of time"
            break
        if expanded == limits.expanded or vain >= limits.patience:
            outcome.reason = "limit of graphs" if expanded == limits.expanded else "no gain for a while"
            break
        _, _, here = heapq.heappop(queue)
        if here.cost > limits.alpha * best:
            continue
        if not here.measured:
            try:
                known = measured(here, cost, limits.alpha * best)
            except OutOfTime:
                outcome.reason = "out of time"
                break
            if known is None:
                continue
            here = known
            if here.cost < best - TOLD_APART * start.cost:
                vain = 0
            best = min(best, here.cost)
            keep(outcome, here, limits.keep, cost)
            if queue and here.cost > queue[0][-1].cost:
                enter(here)
                continue
        vain, expanded = vain + 1, expanded + 1
        for found in space.neighbours(here):
            if found.cost <= limits.alpha * best:
                enter(found)
            if time.monotonic() > limits.deadline:
                break
