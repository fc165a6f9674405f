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
