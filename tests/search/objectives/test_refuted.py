"""A piece of which all promises were refuted is searched again, without the ways that made them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from superopt.cost.layouts import Place
from superopt.cost.model import Cost
from superopt.onnx_io import load, understand
from superopt.operators.pointwise import Relu, Sqrt
from superopt.search.cutting.pieces import cut_into_pieces
from superopt.search.objectives.latency import Latency
from superopt.search.objectives.refuted import refuted
from superopt.search.rewriting.matching import Matching
from superopt.search.rewriting.rewrites import Unfold
from superopt.search.solving.searching import Search
from superopt.search.strategies.found import INTERRUPTED, OUT_OF_TIME, Applied, Found, Limits, Outcome, Replaced
from superopt.term import Graph, variable
from tests.models import normalized
from tests.search.objectives.test_latency import Unmeasured

X = variable("x", (2, 3), "float32")
TILES, UNFOLDED = Unfold("conv by tiles"), Unfold("batchnorm")


def found(cost: float, *names: str) -> Found:
    steps = tuple(Applied(name, "definition", (), X, Relu()(X)) for name in names)
    return Found(Graph((X,), ((Relu() if names else Sqrt())(X),)), cost, steps)


def outcome(*others: Found, reason: str = "exhausted") -> Outcome:
    start = found(1.0)
    return Outcome(start, [start, *others], 7, reason)


def test_ways_to_compute_an_operator_are_refuted_and_what_it_is_made_of_is_not() -> None:
    given = outcome(
        found(0.9, TILES.name, UNFOLDED.name, "add-add-to-add-add-1"), found(0.995, "definition of conv of one row")
    )
    assert refuted(given, given.start) == {TILES.name}


@pytest.mark.parametrize("reason", [INTERRUPTED, OUT_OF_TIME])
def test_what_was_cut_short_refutes_nothing(reason: str) -> None:
    given = outcome(found(0.9, TILES.name), reason=reason)
    assert refuted(given, given.start) == frozenset()


def test_what_won_is_not_refuted() -> None:
    given = outcome(found(0.9, TILES.name))
    assert refuted(given, given.best[1]) == frozenset()


def test_less_of_a_matching_is_the_same_matching_each_time() -> None:
    matching = Matching([TILES, UNFOLDED])
    less = matching.without(frozenset({TILES.name}))
    assert less is matching.without(frozenset({TILES.name}))
    assert list(less._groups._untold) == ["batchnorm"]


class Refusing(Latency):
    """Takes the best that has no steps of a name."""

    def choose(self, outcome: Outcome, place: Place, until: float = math.inf) -> tuple[Found, float, int]:
        last = outcome.best[-1]
        taken = last is not outcome.start and TILES.name not in {step.name for step in last.steps}
        return (last, 1.1, 0) if taken else (outcome.start, 1.0, 1)


def test_such_a_piece_is_searched_again_without_them() -> None:
    piece = cut_into_pieces(understand(load(normalized())))[0]
    asked: list[list[str]] = []

    def strategy(
        graph: Graph, matching: Matching, cost: Cost, limits: Limits, tried: Sequence[Replaced] | None = None
    ) -> Outcome:
        ways = [r.name for r in matching._rewrites]
        asked.append(ways)
        return outcome(found(0.5 if TILES.name in ways else 0.9, ways[0]))

    search = Search(Matching([TILES, UNFOLDED]), Refusing(Unmeasured()), strategy, alpha=1.15)
    solved = search._alone([piece], Limits(), math.inf)
    assert asked == [[TILES.name, UNFOLDED.name], [UNFOLDED.name]]
    assert (solved.gain, solved.winner.cost, solved.outcome.seen, solved.outcome.lost) == (1.1, 0.9, 14, 1)


class Untimed(Refusing):
    """Times nothing whole."""

    def tries(self, outcome: Outcome) -> bool:
        return False


def test_what_was_not_timed_is_not_refuted() -> None:
    piece = cut_into_pieces(understand(load(normalized())))[0]
    asked: list[Matching] = []

    def strategy(
        graph: Graph, matching: Matching, cost: Cost, limits: Limits, tried: Sequence[Replaced] | None = None
    ) -> Outcome:
        asked.append(matching)
        return outcome(found(0.9, TILES.name))

    search = Search(Matching([TILES, UNFOLDED]), Untimed(Unmeasured()), strategy, alpha=1.15)
    solved = search._alone([piece], Limits(), math.inf)
    assert solved.winner is solved.outcome.start
    assert len(asked) == 1
