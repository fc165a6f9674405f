"""What pieces gained by is searched first in others, of whatever structure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest

from superopt.cost.model import Cost
from superopt.search.rewriting.matching import Matching
from superopt.search.solving.following import LEARNED
from superopt.search.solving.searching import Search
from superopt.search.strategies.backtrack import backtrack
from superopt.search.strategies.found import ALIKE, EXHAUSTED, INTERRUPTED, Limits, Outcome, Replaced, Solved
from superopt.term import Graph
from tests.search.solving.test_following import SHORTER, by
from tests.search.solving.test_kinds import Told, relu_pieces

ROWS = (64, 32, 16, 8)
"""Of as many pieces, each of one more relu than the one before."""
OTHER = "(rule other (given (?x n c)) (from (tanh (relu ?x))) (to (tanh (relu (relu ?x)))))"


def solved(gains: dict[int, float], asked: list[tuple[int, bool]], reason: str = "") -> list[Solved]:
    """What pieces come to one after the other; notes which are searched, and whether by all rewrites. Searches by fewer
    end for the reason, if there is one.
    """

    def strategy(
        graph: Graph, matching: Matching, cost: Cost, limits: Limits, tried: Sequence[Replaced] | None = None
    ) -> Outcome:
        asked.append((graph.inputs[0].shape[0], matching is search.matching))
        outcome = backtrack(graph, matching, cost, limits)
        return outcome if asked[-1][1] or not reason else replace(outcome, reason=reason)

    search = Search(by(SHORTER, OTHER), Told(gains), strategy, alpha=1.15)
    pieces = [relu_pieces(count, more="abcdef"[:i]) for i, count in enumerate(ROWS)]
    return [search(places, math.inf) for (places,) in (each.values() for each in pieces)]


def test_what_gained_in_some_pieces_is_searched_alone_in_another_and_is_enough_where_it_gains_clearly() -> None:
    asked: list[tuple[int, bool]] = []
    found = solved(dict.fromkeys(ROWS, 1.4), asked)
    assert asked == [(64, True), (32, True), (16, True), (8, False)]
    assert [(s.outcome.reason, s.gain) for s in found] == [(EXHAUSTED, 1.4)] * LEARNED + [(ALIKE, 1.4)]
    assert {step.name for step in found[-1].winner.steps} == {"shorter"}


@pytest.mark.parametrize("gain", [1.05, 1.0])
def test_where_that_gains_little_all_rewrites_are_searched_too(gain: float) -> None:
    asked: list[tuple[int, bool]] = []
    found = solved(dict.fromkeys(ROWS, 1.4) | {8: gain}, asked)
    assert asked[LEARNED:] == [(8, False), (8, True)]
    assert (found[-1].outcome.reason, found[-1].gain) == (EXHAUSTED, gain)


def test_who_interrupts_that_ends_the_search_of_the_piece() -> None:
    asked: list[tuple[int, bool]] = []
    found = solved(dict.fromkeys(ROWS, 1.4) | {8: 1.0}, asked, INTERRUPTED)
    assert asked[LEARNED:] == [(8, False)]
    assert found[-1].outcome.reason == INTERRUPTED


def test_before_enough_pieces_gained_nothing_is_searched_first() -> None:
    asked: list[tuple[int, bool]] = []
    solved(dict.fromkeys(ROWS, 1.4) | {16: 1.0}, asked)
    assert asked == [(rows, True) for rows in ROWS]


def test_rewrites_of_names_that_there_are_none_of_are_no_search() -> None:
    matching = by(SHORTER, OTHER)
    assert matching.only(frozenset()) is None
    assert matching.only(frozenset({"nothing"})) is None
    assert matching.only(frozenset({"shorter"})) is matching.only(frozenset({"shorter"}))
