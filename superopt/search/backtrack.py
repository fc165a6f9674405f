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
from superopt.search.found import OUT_OF_TIME, TOLD_APART, Found, Limits, Outcome, keep, measured, priority
from superopt.search.space import Space, strategy


@strategy
def backtrack(outcome: Outcome, space: Space, cost: Cost, limits: Limits) -> None:
    """Search from the start of an outcome, which is filled in."""
    start, order = outcome.start, itertools.count()
    queue: list[tuple[float, int, Found]] = []

    def enter(found: Found) -> None:
        heapq.heappush(queue, (priority(found, start), -next(order), found))

    best, vain, expanded = start.cost, 0, 0
    for found in (start, *space.beginnings(start)):
        enter(found)
    while queue:
        if time.monotonic() > limits.deadline:
            outcome.reason = OUT_OF_TIME
            break
        if expanded == limits.expanded or limits.enough(vain, best, start.cost):
            outcome.reason = "limit of graphs" if expanded == limits.expanded else "no gain for a while"
            break
        _, _, here = heapq.heappop(queue)
        if here.cost > limits.alpha * best:
            continue
        if not here.measured:
            try:
                known = measured(here, cost, limits.alpha * best)
            except OutOfTime:
                outcome.reason = OUT_OF_TIME
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
                outcome.reason = OUT_OF_TIME
                return
