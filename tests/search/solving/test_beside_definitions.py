"""A piece is searched by definitions alone too, so that what rules promise wrongly does not hide what these gain."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import pytest

from superopt.cost.layouts import Place
from superopt.cost.model import Cost
from superopt.onnx_io import load, understand
from superopt.operators.pointwise import Relu, Sqrt
from superopt.rules.format import parse_file
from superopt.search.cutting.pieces import Piece, cut_into_pieces
from superopt.search.objectives.latency import Latency
from superopt.search.rewriting.matching import Matching
from superopt.search.rewriting.rewrites import ByRule, Unfold
from superopt.search.solving.searching import Search
from superopt.search.strategies.found import INTERRUPTED, Found, Limits, Outcome, Replaced
from superopt.term import Graph, variable
from tests.models import normalized
from tests.search.objectives.test_latency import Unmeasured

X = variable("x", (2, 3), "float32")
RULE = parse_file("(rule r (given (?x n)) (from (relu (relu ?x))) (to (relu ?x)) (by relu-relu))").rules[0]
UNFOLDED, RULED = Unfold("batchnorm"), ByRule(RULE)
START, DEFINED, PROMISING = (
    Found(Graph((X,), (term,)), cost, ()) for term, cost in ((X, 1.0), (Relu()(X), 0.9), (Sqrt()(X), 0.5))
)


class Whole(Unmeasured):
    """What the rule leads to is slower as a whole, whatever its sum; what the definition does is as fast as its sum."""

    def whole(self, original: Graph, candidate: Graph) -> tuple[float, float]:
        return 1.0, 1.1 if candidate.outputs == PROMISING.graph.outputs else 0.9


def one_piece() -> Piece:
    return cut_into_pieces(understand(load(normalized())))[0]


def searched(asked: list[int], reason: str = "exhausted") -> Search:
    """A search that finds one graph by definitions, and another with rules; it notes how many rewrites it had."""

    def strategy(
        graph: Graph, matching: Matching, cost: Cost, limits: Limits, tried: Sequence[Replaced] | None = None
    ) -> Outcome:
        asked.append(len(matching._rewrites))
        return Outcome(START, [PROMISING if RULED in matching._rewrites else DEFINED, START], 3, reason)

    return Search(Matching([UNFOLDED, RULED]), Latency(Whole()), strategy, alpha=1.15)


def test_what_definitions_alone_gain_wins_where_a_rule_gains_by_its_sum_only() -> None:
    asked: list[int] = []
    solved = searched(asked)._alone([one_piece()], Limits(), math.inf)
    assert asked == [1, 2]
    assert (solved.winner, solved.outcome.untried) == (DEFINED, 0)
    assert solved.gain == pytest.approx(1 / 0.9)
    assert solved.outcome.seen == 5, "the start is seen by both, and is one"


def test_who_interrupts_the_search_by_definitions_gets_what_it_has() -> None:
    asked: list[int] = []
    solved = searched(asked, INTERRUPTED)._alone([one_piece()], Limits(), math.inf)
    assert asked == [1]
    assert solved.winner is DEFINED


@pytest.mark.parametrize("rewrites", [[UNFOLDED], [RULED], []], ids=["definitions", "rules", "nothing"])
def test_one_search_is_enough_where_there_is_nothing_beside_definitions(rewrites: list[Unfold | ByRule]) -> None:
    assert Matching(rewrites).definitions is None


@pytest.mark.parametrize(
    ("left_s", "choosing_s", "until_s"),
    [(1000.0, 800.0, 800.0), (1000.0, 100.0, 500.0), (100.0, 1000.0, 100.0)],
    ids=["its share", "half of what is left", "the piece's"],
)
def test_choosing_hurries_after_its_share_or_half_of_what_is_left_where_that_is_more(
    left_s: float, choosing_s: float, until_s: float
) -> None:
    asked: list[float] = []

    class Noting(Latency):
        def choose(self, outcome: Outcome, place: Place, until: float = math.inf) -> tuple[Found, float, int]:
            asked.append(until)
            return super().choose(outcome, place, until)

    search = searched([])
    search.objective = Noting(Whole())
    now = time.monotonic()
    search._alone([one_piece()], Limits(deadline=now + left_s), choosing_s)
    assert asked
    assert all(until_s - 1.0 <= until - now < until_s + 10.0 for until in asked)
