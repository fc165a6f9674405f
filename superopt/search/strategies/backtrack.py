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
from collections.abc import Iterable

from superopt.cost.model import Cost
from superopt.errors import OutOfTime
from superopt.search.strategies.found import (
    EXHAUSTED,
    LIMIT,
    OUT_OF_TIME,
    TOLD_APART,
    VAIN,
    Found,
    Limits,
    Outcome,
    keep,
    measured,
    priority,
)
from superopt.search.strategies.space import Space, strategy


@strategy
def backtrack(outcome: Outcome, space: Space, cost: Cost, limits: Limits) -> None:
    """Search from the start of an outcome, which is filled in."""
    turns = _Turns(outcome, cost, limits)
    turns.enter((outcome.start, *space.simplified(outcome.start, limits.simplifying)))
    outcome.reason = turns.taken(space)
    if outcome.reason in (VAIN, EXHAUSTED):
        turns.begin_anew()
        for origin in dict.fromkeys((outcome.start, outcome.best[0])):
            turns.enter(space.everywhere(origin))
        if turns.queue:
            outcome.reason = turns.taken(space)


class _Turns:
    """The graphs that are to be rewritten, the cheapest next; of those that were, how many, and how many in vain."""

    def __init__(self, outcome: Outcome, cost: Cost, limits: Limits) -> None:
        self.queue: list[tuple[float, int, Found]] = []
        self._outcome, self._cost, self._limits, self._start = outcome, cost, limits, outcome.start
        self._order, self._best, self._vain, self._expanded = itertools.count(), outcome.start.cost, 0, 0

    def enter(self, found: Iterable[Found]) -> None:
        """Have graphs wait that are not too dear."""
        for one in found:
            if one.cost <= self._most:
                heapq.heappush(self.queue, (priority(one, self._start), -next(self._order), one))

    def begin_anew(self) -> None:
        """With none that wait."""
        self.queue.clear()
        self._vain = 0

    def taken(self, space: Space) -> str:
        """Rewrite one after the other; why that ended."""
        while True:
            if self._is_late():
                return OUT_OF_TIME
            if self._expanded == self._limits.expanded:
                return LIMIT
            if not self.queue:
                return EXHAUSTED
            if self._limits.enough(self._vain, self._best, self._start.cost):
                return VAIN
            try:
                here = self._next()
            except OutOfTime:
                return OUT_OF_TIME
            if here is None:
                continue
            self._vain, self._expanded = self._vain + 1, self._expanded + 1
            for found in space.neighbours(here):
                self.enter((found,))
                if self._is_late():
                    return OUT_OF_TIME

    @property
    def _most(self) -> float:
        return self._limits.alpha * self._best

    def _is_late(self) -> bool:
        return time.monotonic() > self._limits.deadline

    def _next(self) -> Found | None:
        """The graph whose turn it is; None where it is too dear, or dearer than the next. Raises `OutOfTime`."""
        *_, waited = heapq.heappop(self.queue)
        if waited.cost > self._most:
            return None
        if waited.measured:
            return waited
        here = measured(waited, self._cost, self._most)
        if here is None:
            return None
        if here.cost < self._best - TOLD_APART * self._start.cost:
            self._vain = 0
        self._best = min(self._best, here.cost)
        keep(self._outcome, here, self._limits.keep, self._cost)
        if self.queue and here.cost > self.queue[0][-1].cost:
            self.enter((here,))
            return None
        return here
