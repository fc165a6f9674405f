"""Pieces are measured alone in the whole model, one after the other, and leave nothing behind."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import onnx
import pytest

from superopt.cost.bench import Bench
from superopt.cost.measured import MeasuredCost
from superopt.cost.ort import OnnxRuntime
from superopt.cost.table import Table
from superopt.errors import OutOfTime
from superopt.onnx_io import load, understand
from superopt.search.accepting import surest
from superopt.search.accepting.trial import Attempt, Trial
from superopt.search.cutting.pieces import cut_into_pieces
from superopt.search.objectives.latency import Latency
from superopt.search.paired import Paired, Timed
from superopt.search.solving.remembered import Memory
from superopt.search.strategies.found import Found, Outcome, Solved
from tests.search.cutting.test_pieces import layers

RATIOS = 1.1, 0.9, 1.2


def paired(ratio: float) -> Paired:
    alone = Timed(0.01, 0.01, 0.01, 6, 60)
    return Paired(alone, alone, ratio, ratio, ratio, 6, 60, (ratio,) * 6)


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[tuple[Attempt, Trial]]:
    """A candidate in which three pieces are replaced, and what it is tried with."""
    onnx.save(layers(3), path := tmp_path / "original.onnx")
    program = understand(load(path))
    pieces = cut_into_pieces(program)
    starts = [Found(piece.canonical, 1.0, ()) for piece in pieces]
    cover = [Solved((p,), Outcome(s), replace(s, cost=0.5), 2.0) for p, s in zip(pieces, starts, strict=True)]
    with Table(Path(":memory:")) as table:
        cost = MeasuredCost(Bench(OnnxRuntime(), table, 17, lock_directory=tmp_path))
        trial = Trial(program, path, path, tmp_path, Latency(cost), 9.0, 0, [], progress=lambda stage, done: None)
        yield Attempt(pieces, cover=cover, candidate=path), trial


def test_what_is_measured_alone_is_gone_afterwards(
    asked: tuple[Attempt, Trial], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gains, seen = iter(RATIOS), list[list[str]]()

    def measured(base: Path, model: Path, trial: Trial, most_s: float) -> Paired:
        onnx.checker.check_model(model, full_check=True)
        seen.append(sorted(file.name for file in tmp_path.iterdir()))
        return paired(next(gains))

    monkeypatch.setattr(surest, "measured_briefly", measured)
    left = surest.surest(*asked, math.inf)
    assert left is not None
    assert [s.gain for s in left] == [2.0, 1.0, 2.0]
    assert seen == [["alone.onnx", "original.onnx"]] * 3
    assert [file.name for file in tmp_path.iterdir()] == ["original.onnx"]


@pytest.mark.parametrize("in_time", range(len(RATIOS) + 1))
def test_what_was_measured_of_a_candidate_is_not_measured_again(
    asked: tuple[Attempt, Trial], monkeypatch: pytest.MonkeyPatch, in_time: int
) -> None:
    """Not even where the time was over before all of it was."""
    measured, most = list[float](), in_time

    def in_turns(*_: object) -> Paired:
        if len(measured) == most:
            raise OutOfTime("none is left")
        measured.append(RATIOS[len(measured)])
        return paired(measured[-1])

    monkeypatch.setattr(surest, "measured_briefly", in_turns)
    tried, trial = asked
    memory = Memory(trial.bench.table, trial.bench.runtime.key, "a way", 9.0)
    surest.surest(tried, trial, math.inf, memory)
    assert measured == list(RATIOS[:in_time])
    most = len(RATIOS)
    left = surest.surest(tried, trial, math.inf, memory)
    assert measured == list(RATIOS)
    assert left is not None
    assert [s.gain for s in left] == [2.0, 1.0, 2.0]


def test_what_other_pieces_gained_is_not_taken_for_these(
    asked: tuple[Attempt, Trial], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same file may be told apart by other gains, and then its pieces come in another order."""
    ratios = iter((*RATIOS, *RATIOS))
    monkeypatch.setattr(surest, "measured_briefly", lambda *_: paired(next(ratios)))
    tried, trial = asked
    memory = Memory(trial.bench.table, trial.bench.runtime.key, "a way", 9.0)
    surest.surest(tried, trial, math.inf, memory)
    tried.cover[0] = replace(tried.cover[0], gain=1.5)
    left = surest.surest(tried, trial, math.inf, memory)
    assert list(ratios) == []
    assert left is not None
    assert [s.gain for s in left] == [1.5, 2.0, 1.0]
