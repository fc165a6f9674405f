"""Graphs of a piece that no time was left for are timed whole once all pieces were searched."""

from __future__ import annotations

import math
import time
from dataclasses import replace

import pytest

from superopt.search.solving.plan import Times
from superopt.search.solving.searching import Search, better
from superopt.search.solving.solve import solve
from superopt.search.strategies.found import Found, Outcome, Solved
from tests.search.solving.test_kinds import Told, relu_pieces, searching

ROWS = 40


class TwoSteps(Told):
    """Can time one graph of a piece at first, and another the next time; the gains of these in turn."""

    def __init__(self, gains: tuple[float, float]) -> None:
        super().__init__({})
        self.left, self.asked_until = list(gains), list[float]()

    def choose(self, outcome: Outcome, place: object, until: float = math.inf) -> tuple[Found, float, int]:
        self.asked_until.append(until)
        gain = self.left.pop(0)
        return outcome.best[0] if gain > 1.0 else outcome.start, gain, len(self.left)


def solved(gains: tuple[float, float], left_s: float) -> tuple[list[Solved], TwoSteps]:
    """What a piece comes to, with so many seconds until the latest time for what is done again."""
    search, objective = searching({}, []), TwoSteps(gains)
    search = Search(search.matching, objective, search.strategy, alpha=1.15)
    now = time.monotonic()
    times = Times(end=now + 1000.0, latest=now + left_s, patient=now + left_s, once_s=1.0)
    return solve(relu_pieces(ROWS, more="abc"), {}, search, times, lambda *_: None), objective


@pytest.mark.parametrize(("gains", "best"), [((1.02, 1.3), 1.3), ((1.3, 1.02), 1.3), ((1.0, 1.2), 1.2)])
def test_what_gains_more_of_what_is_timed_later_replaces_what_was_timed_first(
    gains: tuple[float, float], best: float
) -> None:
    (found,), objective = solved(gains, left_s=100.0)
    assert found.gain == best
    assert len(objective.asked_until) == 2


def test_what_is_timed_later_has_its_time_from_then_on() -> None:
    _, objective = solved((1.02, 1.3), left_s=100.0)
    first, second = objective.asked_until
    assert second > first + 10.0


def test_nothing_is_timed_later_where_no_time_is_left_for_it() -> None:
    (found,), objective = solved((1.02, 1.3), left_s=0.0)
    assert (found.gain, len(objective.asked_until)) == (1.02, 1)


def test_of_two_searches_that_gain_nothing_the_last_tells_what_is_left_to_be_timed() -> None:
    (first,), _ = solved((1.0, 1.0), left_s=0.0)
    last = replace(first, outcome=replace(first.outcome, best=[first.winner] * 2, untried=1))
    found = better(first, last)
    assert (found.outcome.untried, len(found.outcome.best)) == (1, 2)


@pytest.mark.parametrize("number", [0, 1])
def test_what_was_left_of_the_search_that_gained_less_stays_untimed(number: int) -> None:
    (one,), _ = solved((1.3, 1.0), left_s=0.0)
    more, less = (replace(one, gain=g, outcome=replace(one.outcome, untried=n)) for g, n in ((1.3, 0), (1.2, 2)))
    found = better(*((more, less) if number else (less, more)))
    assert (found.gain, found.outcome.untried, found.outcome.lost) == (1.3, 0, 2)
    assert not found.outcome.is_timed
