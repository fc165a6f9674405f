"""What is done once more for pieces: timing graphs that no time was left for, and searching those whose own time was
over, or that were taken as others that are alike.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from superopt.search.solving.joined import JOINED_SHARE
from superopt.search.solving.searching import Search, kept
from superopt.search.solving.sharing import shared
from superopt.search.strategies.found import ALIKE, OUT_OF_TIME, Progress, Solved

AGAIN, WORTH_AGAIN, LAST_RESORT = 2.0, 1.5, 0.5
"""How many times its share of the time, by what is at stake in it alone, a piece has where it is searched again; of
what its first search took, at least: else it would see what that saw. Where nothing was gained less will do, as most
of the first time went by with timing kernels, which are known now.
"""

TIMING_SHARE = 0.5
"""What timing more of what was found may take of that time: each timing takes less than a search, and tells more."""


@dataclass(frozen=True)
class Again:
    """Searches pieces once more, whose first searches had `each_s` seconds for what was at stake; `took` is what the
    first search of each did, by its number.
    """

    search: Search
    each_s: float
    took: Mapping[int, float]
    progress: Progress

    def __call__(self, solved: list[Solved], latest: float, worth: float = WORTH_AGAIN) -> list[Solved]:
        """The same with more graphs timed of those that some are left of, and with those searched again whose time was
        over, until the latest, where that is `worth` it; and in two thirds of what time was left before that, those
        that were taken as others that are alike.
        """
        cost = self.search.objective.machine
        first = cost.bench.deadline
        left_s = max(first - time.monotonic(), 0.0)
        cost.bench.deadline = max(first, latest - left_s)
        solved = self._with_more_timed(solved, latest - left_s)
        solved = self._of(solved, OUT_OF_TIME, latest - left_s, worth)
        now = time.monotonic()
        cost.bench.deadline = min(now + left_s, max(first, latest))
        solved = self._of(solved, ALIKE, now + (1.0 - JOINED_SHARE) * max(cost.bench.deadline - now, 0.0), worth)
        return kept(solved) if self.search.stopped else solved

    def _with_more_timed(self, solved: list[Solved], until: float) -> list[Solved]:
        """With more graphs timed of the pieces that some are left of, which share a part of the time."""
        solved, now = list(solved), time.monotonic()
        stakes = {i: s.at_stake for i, s in enumerate(solved) if s.outcome.untried and not s.remembered}
        for i, seconds in shared(stakes, now + TIMING_SHARE * (until - now), self.progress, "time again"):
            if self.search.stopped or seconds <= 0.0:
                break
            with self.search.stoppable():
                solved[i] = self.search.with_more_timed(solved[i], seconds)
        return solved

    def _of(self, solved: list[Solved], reason: str, until: float, worth: float) -> list[Solved]:
        """With those whose search ended for a reason: those first that saw least."""
        solved = list(solved)
        ended = [i for i, s in enumerate(solved) if s.outcome.reason == reason and not s.remembered]
        for number, i in enumerate(sorted(ended, key=lambda i: solved[i].outcome.seen)):
            left_s, one = until - time.monotonic(), solved[i]
            if self.search.stopped or left_s <= 0.0:
                break
            seconds = min(left_s, AGAIN * self.each_s * one.at_stake)
            if seconds < worth * self.took[i]:
                continue
            self.progress("search again", number / len(ended))
            with self.search.stoppable():
                solved[i] = self.search(one.places, seconds, before=one)
        return solved
