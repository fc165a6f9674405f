"""Cost-based backtracking (TASO, SOSP 2019): always rewrite the cheapest graph not yet rewritten, and keep what costs
less than α times the best. Where one rewrite at a time finds no more, it goes on from those graphs that each rewrite
makes of the start, and of the best so far, at all of its places at once.

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

    best, vain, expanded, one_by_one = start.cost, 0, 0, True
    for found in (start, *space.simplified(start)):
        enter(found)
    while True:
        if time.monotonic() > limits.deadline:
            outcome.reason = OUT_OF_TIME
            break
        if expanded == limits.expanded:
            outcome.reason = "limit of graphs"
            break
        if not queue or limits.enough(vain, best, start.cost):
            outcome.reason = "no gain for a while" if queue else "exhausted"
            queue.clear()
            for origin in dict.fromkeys((start, outcome.best[0])) if one_by_one else ():
                for found in space.everywhere(origin):
                    if found.cost <= limits.alpha * best:
                        enter(found)
            vain, one_by_one = 0, False
            if not queue:
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
