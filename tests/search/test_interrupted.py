"""Searches and judgements that somebody interrupts, or for which there is no time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from superopt.cost.measured import MeasuredCost
from superopt.cost.model import Cost
from superopt.search.accepting import judge
from superopt.search.accepting.judge import judged
from superopt.search.accepting.trial import Attempt
from superopt.search.paired import Paired, Timed
from superopt.search.rewriting.matching import Matching
from superopt.search.rewriting.rewrites import Unfold
from superopt.search.strategies.backtrack import backtrack
from superopt.search.strategies.found import INTERRUPTED, OUT_OF_TIME, Limits, Outcome, Replaced, Strategy
from superopt.term import Graph
from tests.models import normalized
from tests.search.trying import tried


def stopped(
    graph: Graph, matching: Matching, cost: Cost, limits: Limits, tried: Sequence[Replaced] | None = None
) -> Outcome:
    """A search that somebody interrupts at its end."""
    return replace(backtrack(graph, matching, cost, limits, tried), reason=INTERRUPTED)


def test_what_an_interrupted_search_has_found_is_judged(cost: MeasuredCost, tmp_path: Path) -> None:
    found = tried(normalized(), [Unfold("lrn")], cost, tmp_path, strategy=stopped)
    assert (found.accepted, found.reason) == (True, "confirmed in fresh sessions")


def test_an_interrupted_search_that_has_nothing_ends_at_once(cost: MeasuredCost, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        tried(normalized(), [Unfold("softmax")], cost, tmp_path, strategy=stopped)


def interrupted(times: int) -> tuple[Callable[..., Attempt], list[int]]:
    """What judges, and is interrupted so many times; and how often it was called."""
    calls: list[int] = []

    def judging(*given: Any) -> Attempt:
        calls.append(len(calls))
        if len(calls) <= times:
            raise KeyboardInterrupt
        return judged(*given)

    return judging, calls


@pytest.mark.parametrize(("times", "strategy", "called"), [(1, backtrack, 2), (2, backtrack, 2), (1, stopped, 1)])
def test_the_second_interrupt_ends_it_also_where_the_first_ended_the_search(
    cost: MeasuredCost,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    times: int,
    strategy: Strategy,
    called: int,
) -> None:
    judging, calls = interrupted(times)
    monkeypatch.setattr("superopt.search.deciding.judged", judging)
    if times == 1 and strategy is backtrack:
        assert tried(normalized(), [Unfold("lrn")], cost, tmp_path, strategy=strategy).accepted
    else:
        with pytest.raises(KeyboardInterrupt):
            tried(normalized(), [Unfold("lrn")], cost, tmp_path, strategy=strategy)
    assert len(calls) == called


def test_what_was_measured_before_an_interrupt_is_measured_anew_and_told_once(
    cost: MeasuredCost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = Timed(0.01, 0.01, 0.01, 10, 100)
    gain = Paired(alone, alone, 1.2, 1.1, 1.3, 10, 100, (1.2,) * 10)
    monkeypatch.setattr(judge, "compare", lambda *_, **__: gain)
    calls = list[Attempt]()

    def judging(*given: Any) -> Attempt:
        calls.append(judged(*given))
        if len(calls) == 1:
            raise KeyboardInterrupt
        return calls[-1]

    monkeypatch.setattr("superopt.search.deciding.judged", judging)
    found = tried(normalized(), [Unfold("lrn")], cost, tmp_path)
    assert len(calls) == 2
    assert (found.accepted, found.interrupted, len(found.pairs)) == (True, True, 1)


def test_where_the_time_was_too_short_to_find_anything_that_is_said(cost: MeasuredCost, tmp_path: Path) -> None:
    def late(*given: Any) -> Outcome:
        return replace(backtrack(*given), reason=OUT_OF_TIME)

    found = tried(normalized(), [Unfold("softmax")], cost, tmp_path, strategy=late)
    assert found.reason.endswith(
        "of those that the share of --time for searching was enough for; a longer one may find some"
    )
