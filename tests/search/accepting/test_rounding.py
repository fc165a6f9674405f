"""What rounds more than it may is told from what is wrong, and the pieces that do so are left out."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from superopt.cost.measured import MeasuredCost
from superopt.errors import VerificationFailed
from superopt.search.accepting import rounding
from superopt.search.accepting.agreement import Agreement
from superopt.search.accepting.outputs import Sample, judged
from superopt.search.rewriting.rewrites import Unfold
from tests.models import normalized
from tests.search.trying import tried

EXACT = np.linspace(1.0, 2.0, 8)
ROUNDED = EXACT.astype(np.float32)
INFINITE = np.where(EXACT < 1.5, EXACT, np.inf)

CASES = {
    "is farther from 64 bits": (ROUNDED, ROUNDED * np.float32(1 + 5e-5), EXACT, True),
    "is another": (ROUNDED, ROUNDED * np.float32(1.01), EXACT, False),
    "is a little off": (ROUNDED, ROUNDED * np.float32(1.001), EXACT, False),
    "is off, and so is the original": (ROUNDED, ROUNDED * np.float32(1.01), EXACT * 1.002, True),
    "is off by much more than the original": (ROUNDED, ROUNDED * np.float32(1.1), EXACT * 1.002, False),
    "is infinite where the original is not": (ROUNDED, INFINITE.astype(np.float32), EXACT, False),
    "is infinite, as the original is where it need not be": (
        np.where(EXACT > 1.5, EXACT, np.inf).astype(np.float32),
        INFINITE.astype(np.float32),
        EXACT,
        True,
    ),
}


@pytest.mark.parametrize(("expected", "found", "exact", "rounds"), CASES.values(), ids=CASES)
def test_what_rounding_may_explain_is_told_from_what_is_wrong(
    expected: Any, found: Any, exact: Any, rounds: bool
) -> None:
    sample = Sample({}, [expected], [exact], found=[[found]])
    outcome = judged(["y"], [sample])
    assert (outcome.agrees, outcome.rounds) == (False, rounds)


HALVES = np.random.default_rng(0).standard_normal(16).astype(np.float16).astype(np.float32)


@pytest.mark.parametrize(
    ("expected", "overflowing", "agrees"),
    [
        (HALVES, True, True),
        (HALVES, False, False),
        (HALVES * np.float32(1.1), True, False),
        (np.arange(16, dtype=np.float32), True, False),
    ],
    ids=["rounded to 16 bits", "of another model", "of 32 bits", "whole numbers"],
)
def test_an_output_that_is_cast_from_16_bits_may_differ_as_these_may(
    expected: Any, overflowing: bool, agrees: bool
) -> None:
    """As of models that onnxruntime's tools convert, which then take and give 32 bits."""
    sample = Sample({}, [expected], [None], overflowing, found=[[expected * np.float32(1.001)]])
    assert judged(["y"], [sample]).agrees is agrees


@dataclass(eq=False)
class Piece:
    """As much of a solved piece as tells whether anything replaces it."""

    gain: float


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Which sets of pieces were compared, of which those that lose here do not agree."""
    seen: list[set[int]] = []

    def compared(guilty: set[int], all_: Sequence[Any]) -> list[set[int]]:
        def agrees(pieces: Sequence[Any], trial: Any) -> bool:
            seen.append({all_.index(p) for p in pieces})
            return guilty.isdisjoint(seen[-1])

        monkeypatch.setattr(rounding, "_agrees", agrees)
        monkeypatch.setattr(rounding, "as_it_stands", lambda s: Piece(1.0))
        return seen

    return compared


def left_of(pieces: Sequence[Piece], end: float = math.inf) -> list[Any] | None:
    tried: Any = SimpleNamespace(cover=pieces)
    no_trial: Any = None
    return rounding.without_rounding(tried, no_trial, end)


def test_nothing_is_left_out_where_pieces_differ_only_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounding, "_agrees", lambda pieces, trial: True)
    assert left_of([Piece(2.0), Piece(2.0)]) is None


@pytest.mark.parametrize("guilty", [{0}, {5}, {2, 7}, {0, 1, 2}])
def test_pieces_that_round_too_much_are_found_by_halves_and_stay_as_they_were(guilty: set[int], asked: Any) -> None:
    gains = [2.0] * 8
    pieces = [Piece(gain) for gain in (*gains, 1.0)]
    seen = asked(guilty, pieces)
    left = left_of(pieces)
    assert left is not None
    assert [s.gain for s in left] == [1.0 if i in guilty else 2.0 for i in range(8)] + [1.0]
    assert len(seen) <= 2 * math.log2(len(gains)) * len(guilty)


@pytest.mark.parametrize(("guilty", "count", "end"), [({0}, 1, math.inf), ({0, 1}, 2, math.inf), ({0}, 4, -math.inf)])
def test_nothing_is_left_where_all_round_too_much_or_no_time_is(
    guilty: set[int], count: int, end: float, asked: Any
) -> None:
    pieces = [Piece(2.0) for _ in range(count)]
    asked(guilty, pieces)
    assert left_of(pieces, end) is None


REASON = 'output "answer" is off by 6e-05 from a 64-bit evaluation, the original by 6.4e-06'


@pytest.fixture(params=[True, False])
def rounds(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether rounding may explain that a candidate differs, as it does."""
    other = Agreement(False, True, REASON, 5, (), rounds=request.param)
    monkeypatch.setattr("superopt.search.accepting.judge.compared", lambda *_, **__: other)
    return bool(request.param)


def test_where_all_that_was_found_rounds_too_much_the_original_is_the_answer(
    rounds: bool, cost: MeasuredCost, tmp_path: Path
) -> None:
    with nullcontext() if rounds else pytest.raises(VerificationFailed, match=re.escape(REASON)):
        found = tried(normalized(), [Unfold("lrn")], cost, tmp_path)
        assert (found.accepted, found.agreement) == (False, None)
        assert found.reason.startswith("what was found rounds more than it may: the optimized model differs from the")
        assert found.reason.endswith(REASON)
        assert found.alone is not None, "the original was measured"
