"""Of pieces that are alike which are searched, timed whole, and searched again; and what time each has."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from itertools import pairwise

import pytest
from onnx import TensorProto, helper

from superopt.cost.analytic import AnalyticCost
from superopt.cost.layouts import Place
from superopt.cost.model import Cost
from superopt.onnx_io import load, understand
from superopt.search.cutting.pieces import Piece, cut_into_pieces, distinct
from superopt.search.objectives.latency import Latency
from superopt.search.rewriting.matching import Matching
from superopt.search.solving.following import TOLD, Gained
from superopt.search.solving.plan import Times
from superopt.search.solving.searching import Search
from superopt.search.solving.sharing import of_kinds
from superopt.search.solving.solve import solve
from superopt.search.strategies.backtrack import backtrack
from superopt.search.strategies.found import (
    ALIKE,
    EXHAUSTED,
    OUT_OF_TIME,
    Found,
    Limits,
    Outcome,
    Replaced,
    Solved,
)
from superopt.term import Graph, Term
from tests.models import model
from tests.search.objectives.test_latency import Unmeasured
from tests.search.solving.test_following import SHORTER, by, relus


class Told(Latency):
    """Says what pieces gain, by the size of their first axis: where they are relus, and now one fewer."""

    def __init__(self, gains: dict[int, float]) -> None:
        super().__init__(Unmeasured())
        self.gains = gains

    def seconds(self, costs: Iterable[float]) -> float:
        """As good as none, so that judging takes what the looks take."""
        return 1e-9

    def cost(self, place: Place) -> Cost:
        return AnalyticCost()

    def choose(self, outcome: Outcome, place: Place, until: float = math.inf) -> tuple[Found, float, int]:
        found = next((f for f in outcome.best if f.steps), outcome.start)
        return found, self.gains[outcome.start.graph.inputs[0].shape[0]] if found.steps else 1.0, 0


class Timing(Told):
    """Notes for how many rows it was asked."""

    def __init__(self, gains: dict[int, float], timed: list[int]) -> None:
        super().__init__(gains)
        self.timed = timed

    def choose(self, outcome: Outcome, place: Place, until: float = math.inf) -> tuple[Found, float, int]:
        self.timed.append(outcome.start.graph.inputs[0].shape[0])
        return super().choose(outcome, place, until)


def relu_pieces(*rows: int, more: str = "") -> dict[tuple[Term, ...], list[Piece]]:
    pieces = []
    for count in rows:
        nodes = [helper.make_node("Relu", [a], [b]) for a, b in pairwise(("x", "r", *more, "y"))]
        ends = [(name, TensorProto.FLOAT, [count, 4]) for name in "xy"]
        pieces += cut_into_pieces(understand(load(model(nodes, ends[:1], ends[1:]))))
    return distinct(pieces)


def searching(
    gains: dict[int, float], asked: list[int], ends: Sequence[str | BaseException] = (), finds_until: float = math.inf
) -> Search:
    """A search that notes for how many rows it was asked, ends for these reasons, one after the other, and finds
    something so often.
    """
    left = list(ends)

    def strategy(
        graph: Graph, matching: Matching, cost: Cost, limits: Limits, tried: Sequence[Replaced] | None = None
    ) -> Outcome:
        asked.append(graph.inputs[0].shape[0])
        ends = left.pop(0) if left else EXHAUSTED
        if isinstance(ends, BaseException):
            raise ends
        outcome = backtrack(graph, matching if len(asked) <= finds_until else Matching([]), cost, limits)
        outcome.reason = ends
        return outcome

    return Search(by(SHORTER), Told(gains), strategy, alpha=1.15)


def reasons(solved: list[Solved]) -> list[tuple[str, float]]:
    return [(s.outcome.reason, s.gain) for s in solved]


@pytest.mark.parametrize(("gain", "like"), [(1.3, True), (1.19, True), (1.15, False), (1.0, False)])
def test_what_gains_about_as_much_in_a_piece_that_is_alike_needs_no_search_yet(gain: float, like: bool) -> None:
    asked: list[int] = []
    search = searching({64: 1.4, 32: gain}, asked)
    found = [search(places, math.inf) for places in relu_pieces(64, 32).values()]
    assert reasons(found) == [(EXHAUSTED, 1.4), (ALIKE if like else EXHAUSTED, gain)]
    assert asked == ([64] if like else [64, 32])
    assert [len(s.winner.graph.runs) for s in found] == [1, 1]


@pytest.mark.parametrize(("gain", "asked_for"), [(1.09, [64, 32]), (1.11, [64])])
def test_what_gains_little_tells_nothing_of_pieces_that_are_alike(gain: float, asked_for: list[int]) -> None:
    asked: list[int] = []
    search = searching({64: gain, 32: gain}, asked)
    found = [search(places, math.inf) for places in relu_pieces(64, 32).values()]
    assert asked == asked_for
    assert [s.gain for s in found] == [gain, gain]


def test_what_gains_less_there_is_kept_where_its_own_search_finds_nothing() -> None:
    asked: list[int] = []
    search = searching({64: 1.4, 32: 1.1}, asked, finds_until=1)
    found = [search(places, math.inf) for places in relu_pieces(64, 32).values()]
    assert asked == [64, 32]
    assert reasons(found) == [(EXHAUSTED, 1.4), (EXHAUSTED, 1.1)]
    assert len(found[1].winner.graph.runs) == 1


def test_what_is_followed_is_what_gained_about_most() -> None:
    """A second piece gains by its own search, but little; the third is held against the first."""
    asked: list[int] = []
    search = searching({64: 1.4, 48: 1.02, 32: 1.3}, asked)
    found = [search(places, math.inf) for places in relu_pieces(64, 48, 32).values()]
    assert asked == [64, 48]
    assert reasons(found) == [(EXHAUSTED, 1.4), (EXHAUSTED, 1.02), (ALIKE, 1.3)]
    other = search.gained.like(found[2].places[0])
    assert other is found[0]
    assert search.gained.like(found[0].places[0]) is None, "nor does a piece follow itself"


def test_who_is_followed_is_held_against_the_best_and_not_against_the_one_before() -> None:
    gained, pieces = Gained(), list(relu_pieces(64, 48, 32, 16).values())
    for places, gain in zip(pieces, (1.4, 1.2, 1.1), strict=False):
        start, winner = Found(places[0].canonical, 1.0, ()), Found(relus(1, 64, 4), 0.5, ())
        gained.learn(Solved(tuple(places), Outcome(start, [winner]), winner, gain))
    like = gained.like(pieces[3][0])
    assert like is not None
    assert like.gain == 1.2


@pytest.mark.parametrize("reason", [ALIKE, EXHAUSTED])
def test_a_piece_that_is_not_rewritten_or_that_followed_another_is_followed_by_none(reason: str) -> None:
    gained, (first, second) = Gained(), relu_pieces(64, 32).values()
    start = Found(first[0].canonical, 1.0, ())
    winner = start if reason == EXHAUSTED else Found(relus(1, 64, 4), 0.5, ())
    gained.learn(Solved(tuple(first), Outcome(start, [winner], reason=reason), winner, 1.4))
    assert gained.like(second[0]) is None


@pytest.mark.parametrize(
    ("gains", "expected"),
    [
        ((1.2, 1.2), None),
        ((1.2, 1.2, 1.2), 1.2),
        ((1.4, 1.3, 1.5), 1.2),
        ((1.1, 1.1, 1.1), pytest.approx(1.1)),
        ((1.0, 0.9, 1.0), 1.0),
    ],
    ids=["too few", "as promised", "more than promised", "less", "nothing"],
)
def test_what_some_came_to_tells_of_further_ones_but_of_no_more_than_is_promised(
    gains: Sequence[float], expected: float | None
) -> None:
    gained, (piece,) = Gained(), (places[0] for places in relu_pieces(64).values())
    for gain in gains:
        gained.tell(piece, 1.2, gain)
    assert gained.expected(piece, 1.2) == expected


def test_of_pieces_of_a_kind_few_are_timed_whole() -> None:
    """Those that follow the first: until some have come to what their sums promise."""
    rows, timed = range(64, 32, -4), list[int]()
    search = searching({}, [])
    search.objective = Timing(dict.fromkeys(rows, 2.0), timed)
    found = [search(places, math.inf) for places in relu_pieces(*rows).values()]
    assert timed == list(rows)[: 1 + TOLD]
    assert [reason for reason, _ in reasons(found)] == [EXHAUSTED, *[ALIKE] * 7]
    assert all(len(s.winner.graph.runs) == 1 and s.gain > 1.5 for s in found)


def test_where_more_is_asked_of_a_graph_than_its_time_all_of_a_kind_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """As that fewer bytes take no more time."""
    rows, asked = range(64, 32, -4), list[int]()
    search = searching({}, [])
    search.objective = Timing(dict.fromkeys(rows, 2.0), asked)
    monkeypatch.setattr(Timing, "times_whole", False)
    for places in relu_pieces(*rows).values():
        search(places, math.inf)
    assert asked == list(rows)


def test_most_of_what_is_at_stake_in_pieces_of_a_kind_is_for_the_first() -> None:
    groups = relu_pieces(64, 32, 16)
    first, second, third = groups
    stakes = of_kinds({second: 2.0, first: 4.0, third: 1.0}, groups)
    assert [stakes[key] for key in groups] == pytest.approx([4.0 + 0.8 * 3.0, 0.4, 0.2])


@pytest.mark.parametrize("gain", [1.4, 1.05])
def test_once_the_first_of_a_kind_was_searched_the_others_count_by_what_is_at_stake_in_them(
    gain: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of 64 and 32 rows are alike, that of 16 has a relu less."""
    given: list[int] = []
    own = Search.__call__

    def noted(self: Search, places: Sequence[Piece], seconds: float, before: Solved | None = None) -> Solved:
        given.append(places[0].canonical.inputs[0].shape[0])
        return own(self, places, seconds, before=before)

    monkeypatch.setattr(Search, "__call__", noted)
    search = searching({64: gain, 32: gain, 16: gain}, [])
    search.objective.machine.bench.deadline = time.monotonic() + 1000.0
    solve(
        relu_pieces(64, 32, more="m") | relu_pieces(16),
        {},
        search,
        Times(math.inf, math.inf, math.inf, once_s=1000.0),
        lambda *_: None,
    )
    assert given[:3] == [64, 32, 16]


def test_with_time_left_those_are_searched_too_and_what_was_found_stays_where_no_more_is() -> None:
    asked: list[int] = []
    search = searching({64: 1.4, 32: 1.4}, asked, finds_until=1)
    search.objective.machine.bench.deadline = time.monotonic() + 1000.0
    found = solve(relu_pieces(64, 32), {}, search, Times(math.inf, math.inf, math.inf), lambda *_: None)
    assert asked == [64, 32]
    assert reasons(found) == [(EXHAUSTED, 1.4)] * 2
    assert [len(s.winner.graph.runs) for s in found] == [1, 1], "though its own search finds nothing"
    assert found[1].outcome.seen == 2, "of both searches, which have the start"


def test_what_was_known_before_is_followed_as_well() -> None:
    groups = relu_pieces(64, 32)
    first = next(iter(groups))
    known = searching({64: 1.4}, [])(groups[first], math.inf)
    search = searching({32: 1.3}, [], finds_until=0)
    search.objective.machine.bench.deadline = time.monotonic() + 1000.0
    found = solve(groups, {first: known}, search, Times(math.inf, math.inf, math.inf), lambda *_: None)
    assert reasons(found) == [(EXHAUSTED, 1.4), (EXHAUSTED, 1.3)]


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
