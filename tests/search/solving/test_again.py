"""Pieces are searched again where time is left, and joined ones have what is left for them."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable

import pytest

from superopt.cost.analytic import AnalyticCost
from superopt.cost.layouts import Place
from superopt.search.solving.plan import Times, planned
from superopt.search.solving.solve import solve
from superopt.search.strategies.found import ALIKE, EXHAUSTED, OUT_OF_TIME, Found, Outcome
from superopt.term import Graph
from tests.search.solving.test_kinds import Told, reasons, relu_pieces, searching


@pytest.mark.parametrize(
    ("end", "latest", "settings", "again"),
    [
        pytest.param(60.0, 60.0, 1, True, id="time is left"),
        pytest.param(40.0, 60.0, 1, False, id="judging takes it"),
        pytest.param(60.0, 60.0, 2, False, id="judging twice takes it"),
        pytest.param(60.0, 24.0, 1, False, id="too late"),
    ],
)
def test_whose_time_was_over_is_searched_again_if_some_is_left_beyond_what_judging_takes(
    end: float, latest: float, settings: int, again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 20 s for the search the first takes 25; judging takes 18 for two candidates, as the model takes no time."""
    monkeypatch.setattr("superopt.search.solving.solve.expected_gain", lambda *_: 1.2)
    asked: list[int] = []
    monkeypatch.setattr("time.monotonic", lambda: 25.0 * min(len(asked), 1))
    search = searching({64: 1.0}, asked, [OUT_OF_TIME])
    search.objective.machine.bench.deadline = 20.0
    monkeypatch.setattr("superopt.search.solving.solve.WORTH_AGAIN", 0.0)
    found = solve(relu_pieces(64), {}, search, Times(end, latest, latest, settings), lambda *_: None)
    assert asked == [64] * (2 if again else 1)
    assert found[0].outcome.reason == (EXHAUSTED if again else OUT_OF_TIME)


class Late(Told):
    """Chooses for the first time when 25 s have passed; an inference takes so many seconds."""

    def __init__(self, gains: dict[int, float], inference_s: float, clock: list[float]) -> None:
        super().__init__(gains)
        self.inference_s, self.clock = inference_s, clock

    def seconds(self, costs: Iterable[float]) -> float:
        return self.inference_s

    def choose(self, outcome: Outcome, place: Place, until: float = math.inf) -> tuple[Found, float, int]:
        self.clock[0] = 25.0
        return super().choose(outcome, place, until)


def searches(monkeypatch: pytest.MonkeyPatch, any_time: str, gain: float, end: float, inference_s: float = 1e-9) -> int:
    """How often a piece is searched whose first search is over, after 25 s of 20, and gains so much; for another of
    this kind `any_time` is enough.
    """
    asked, clock = list[int](), [0.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    monkeypatch.setattr(f"superopt.search.solving.solve.{any_time}", 0.0)
    search = searching({}, asked, [OUT_OF_TIME])
    search.objective = Late({64: gain}, inference_s, clock)
    search.objective.machine.bench.deadline = 20.0
    solve(relu_pieces(64), {}, search, Times(end=end, latest=20.0, patient=60.0), lambda *_: None)
    return len(asked)


@pytest.mark.parametrize(("gain", "times"), [(1.0, 2), (1.005, 2), (1.2, 1)])
def test_where_nothing_was_gained_the_search_goes_on_for_longer(
    gain: float, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second search of those whose time was over comes too late else."""
    assert searches(monkeypatch, "WORTH_AGAIN", gain, end=100.0) == times


@pytest.mark.parametrize(("end", "times"), [(45.0, 2), (40.0, 1)])
def test_of_a_slow_model_it_does_while_what_it_finds_can_be_judged_at_least(
    end: float, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where an inference takes 0.3 s, judging takes 30 s as usual, and 18 at least."""
    assert searches(monkeypatch, "LAST_RESORT", 1.0, end, inference_s=0.3) == times


@pytest.mark.parametrize(("timing", "searching"), [(0.5, 8.0), (2.5, 10.0), (9.0, 12.0)])
def test_pieces_have_more_time_where_timing_the_model_as_it_stands_takes_long(timing: float, searching: float) -> None:
    times = Times(60.0, 60.0, 60.0, once_s=8.0, once_most_s=12.0)
    assert times.searching_s(timing) == searching


@pytest.mark.parametrize(("latest", "times", "left_until"), [(80.0, 2, 35.0), (18.0, 1, 20.0), (24.0, 2, 24.0)])
def test_joined_pieces_have_the_time_that_was_left_for_them(
    latest: float, times: int, left_until: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 20 s the first search takes 15, and the second 15 more: 5 are left, but none beyond the latest."""
    monkeypatch.setattr("superopt.search.solving.solve.expected_gain", lambda *_: 1.2)
    asked: list[int] = []
    monkeypatch.setattr("time.monotonic", lambda: 15.0 * len(asked))
    monkeypatch.setattr("superopt.search.solving.solve.WORTH_AGAIN", 0.0)
    search = searching({64: 1.0}, asked, [OUT_OF_TIME])
    search.objective.machine.bench.deadline = 20.0
    solve(relu_pieces(64), {}, search, Times(80.0, latest, latest), lambda *_: None)
    assert asked == [64] * times
    assert search.objective.machine.bench.deadline == left_until


@pytest.mark.parametrize(("share", "times"), [(0.0, 2), (0.5, 1)])
def test_where_nothing_is_gained_joined_pieces_have_their_share_before_pieces_are_searched_again(
    share: float, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first search takes 25 s: of 30 there are 5 left for a second, if joined pieces need no 10 of them."""
    asked: list[int] = []
    monkeypatch.setattr("time.monotonic", lambda: 25.0 * min(len(asked), 1))
    monkeypatch.setattr("superopt.search.solving.solve.LAST_RESORT", 0.0)
    search = searching({64: 1.0}, asked, [OUT_OF_TIME])
    search.objective.machine.bench.deadline = 20.0
    solve(relu_pieces(64), {}, search, Times(100.0, 20.0, 30.0, joined_share=share), lambda *_: None)
    assert asked == [64] * times
    assert search.objective.machine.bench.deadline == 30.0


def test_a_second_search_that_would_see_no_more_than_the_first_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last of two has what the first leaves, and not so much again."""
    monkeypatch.setattr("superopt.search.solving.solve.expected_gain", lambda *_: 1.2)
    asked: list[int] = []
    monkeypatch.setattr("time.monotonic", lambda: (0.0, 1.0, 20.0)[min(len(asked), 2)])
    search = searching({64: 1.0, 63: 1.0}, asked, [EXHAUSTED, OUT_OF_TIME])
    search.objective.machine.bench.deadline = 22.0
    solve(relu_pieces(64, 63), {}, search, Times(80.0, 80.0, 80.0), lambda *_: None)
    assert asked == [64, 63], "22 s are its share of twice 22, and 28.5 would be half as much again"


def test_where_costing_all_pieces_takes_too_long_those_that_take_most_are_searched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each of four takes 5 s of 20 to cost: three of them 15, of which 12 may be begun in."""
    asked: list[int] = []
    costed: list[int] = []
    monkeypatch.setattr("time.monotonic", lambda: 5.0 * len(costed))
    search = searching({64: 1.4, 48: 1.4, 32: 1.4, 16: 1.4}, asked)

    class Slow(AnalyticCost):
        def cost(self, graph: Graph, most: float = math.inf) -> float:
            if not asked:
                costed.append(graph.inputs[0].shape[0])
            return super().cost(graph, most)

        def estimate(self, graph: Graph) -> float:
            return AnalyticCost().cost(graph)

    monkeypatch.setattr(search.objective, "cost", lambda place: Slow())
    search.objective.machine.bench.deadline = 20.0
    found = solve(relu_pieces(16, 32, 48, 64), {}, search, Times(80.0, 80.0, 80.0), lambda *_: None)
    assert costed[:3] == [64, 48, 32]
    assert sorted(s.outcome.start.graph.inputs[0].shape[0] for s in found) == [32, 48, 64]


def test_who_interrupts_a_second_search_gets_what_the_first_ones_found() -> None:
    asked: list[int] = []
    search = searching({64: 1.4, 32: 1.4}, asked, [EXHAUSTED, KeyboardInterrupt()])
    search.objective.machine.bench.deadline = time.monotonic() + 1000.0
    found = solve(relu_pieces(64, 32), {}, search, Times(math.inf, math.inf, math.inf), lambda *_: None)
    assert asked == [64, 32]
    assert search.stopped
    assert reasons(found) == [(EXHAUSTED, 1.4), (ALIKE, 1.4)]


def test_judging_takes_the_mean_of_an_original_that_is_slower_than_its_pieces_and_of_these() -> None:
    slow, mean = (
        planned(Times(1e3, 1e3, 1e3, original_s=original_s), inference_s, 0.0, 1e3)
        for original_s, inference_s in ((9.0, 1.0), (0.0, 5.0))
    )
    assert (slow.judging_s, slow.least_s) == (mean.judging_s, mean.least_s)
    assert slow.runs_s == mean.runs_s / 5.0
