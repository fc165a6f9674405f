"""Rows of a batch are computed one after the other where that is faster, and again where a report says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

import superopt
from superopt.api import Options
from superopt.api import replay as apply_again
from superopt.cost.measured import MeasuredCost
from superopt.cost.table import Table
from superopt.errors import OutOfTime, UsageError, VerificationFailed
from superopt.onnx_io import load, to_proto, understand
from superopt.search import sight, turning, variants
from superopt.search.accepting.trial import Attempt, Trial
from superopt.search.branches import Solve
from superopt.search.objectives.bytes_taken import Peak, Size
from superopt.search.objectives.latency import Latency
from superopt.search.objectives.objective import Objective
from superopt.search.report import Solution, Way
from superopt.search.settings import Setting
from superopt.search.solving.remembered import Memory
from tests.onnx_io.models import model
from tests.onnx_io.networks import run

BODY = " ".join(f"h{i + 1} = Floor(g{i}) g{i + 1} = Mul(h{i + 1}, c)" for i in range(6))
ROWS, MAP = 48, (32, 64, 64)
TIME = 20.0
"""Seconds in which what is within the turns is searched too, while others measure: a run that has less finds less than
the next, to which more is known.
"""


def batch(size: str = str(ROWS)) -> onnx.ModelProto:
    """Steps on maps that take half a megabyte each, and of all rows more than caches hold."""
    sizes = f"{size}, {', '.join(map(str, MAP))}"
    held = f"<float[32, 1, 1] c = {{{', '.join(['1.5'] * 32)}}}>"
    return model(f"g (float[{sizes}] g0) => (float[{size}, 32, 1, 1] y) {held} {{ {BODY} y = GlobalMaxPool(g6) }}")


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> Options:
    return Options(time=TIME, timings=tmp_path_factory.mktemp("rows") / "table")


@pytest.fixture(scope="module")
def optimized(options: Options) -> superopt.Result:
    """What optimizing the batch comes to."""
    return superopt.optimize(batch(), options)


def test_rows_whose_values_stay_in_caches_gain(optimized: superopt.Result) -> None:
    assert optimized.report.outcome == "faster"
    assert optimized.report.way == "rows"
    assert "one after the other" in optimized.report.reason
    assert [node.op_type for node in optimized.model.graph if node.op_type == "Scan"]


def test_in_which_way_a_model_gained_is_remembered(
    optimized: superopt.Result, options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert optimized.report.way == "rows"
    monkeypatch.setattr(sight, "glance", lambda *_, **__: pytest.fail("looked at again"))
    monkeypatch.setattr(variants, "LEAST_LEFT", 0.0)
    ways, tried = list[str](), variants._in_a_way

    def watched(name: Way, written: Callable[[], Trial | None], solve: Solve) -> variants.Found | None:
        other = written()
        if other is not None and not other.is_branch:
            ways.append(name)
        return tried(name, lambda: other, solve)

    monkeypatch.setattr(variants, "_in_a_way", watched)
    again = superopt.optimize(batch(), options)
    assert again.report.way == "rows"
    assert ways == ["rows"]
    assert again.report.measured is not None
    assert again.report.measured.remembered


def test_a_report_says_that_they_are_computed_so_again(optimized: superopt.Result, tmp_path: Path) -> None:
    again = apply_again(optimized.report, batch(), Options(time=TIME, timings=tmp_path / "table"))
    assert again.report.way == "rows"


def test_they_are_where_no_piece_of_the_report_has_a_text(optimized: superopt.Result, tmp_path: Path) -> None:
    piece = Solution(text=None, piece="0", places=1, gain=1.1, saved=0.1)
    report = optimized.report.model_copy(update={"solutions": (piece,)})
    again = apply_again(report, batch(), Options(time=TIME, timings=tmp_path / "table"))
    assert (again.report.way, again.report.solutions) == ("rows", ())


def test_a_symbolic_batch_is_computed_so_at_its_sizes(cost: MeasuredCost, tmp_path: Path) -> None:
    path = tmp_path / "symbolic.onnx"
    onnx.save(batch("N"), path)
    own = MeasuredCost(replace(cost.bench, sizes={"N": ROWS}))
    settings = (Setting({"N": ROWS}, {"g0": (ROWS, *MAP)}),)
    trial = Trial(
        understand(load(path)), path, path, tmp_path, Latency(own), 30.0, 0, [], lambda stage, done: None, settings
    )
    found = turning.turning(trial)
    assert found is not None
    x = np.random.default_rng(0).standard_normal((3, *MAP)).astype(np.float32)
    for rows in (0, 1, 3):
        ours, theirs = (run(made, {"g0": x[:rows]}) for made in (to_proto(found.trial.program.model), batch("N")))
        np.testing.assert_array_equal(ours, theirs)


def test_values_of_one_row_take_less_memory_than_those_of_a_batch(tmp_path: Path) -> None:
    found = superopt.optimize(batch(), Options(time=TIME, timings=tmp_path / "table", objective="memory"))
    assert (found.report.outcome, found.report.way) == ("smaller", "rows")
    told = found.report.taken
    assert told is not None
    assert told.original > 4 * told.optimized
    assert told.optimized_counted is None


@pytest.mark.parametrize(("objective", "is_asked"), [(Latency, True), (Peak, True), (Size, False)])
def test_rows_are_of_no_use_for_fewer_weights(
    trial: Trial, monkeypatch: pytest.MonkeyPatch, objective: type[Objective], is_asked: bool
) -> None:
    asked = []
    monkeypatch.setattr(turning, "row_by_row", lambda *_: asked.append(True))
    assert turning.turning(replace(trial, objective=objective(trial.cost))) is None
    assert bool(asked) is is_asked


@pytest.fixture
def trial(cost: MeasuredCost, tmp_path: Path) -> Trial:
    """A trial of the batch."""
    path = tmp_path / "batch.onnx"
    onnx.save(batch(), path)
    return Trial(understand(load(path)), path, path, tmp_path, Latency(cost), 30.0, 0, [], lambda stage, done: None)


def test_rows_that_take_longer_by_themselves_are_not(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    found = turning.turning(trial)
    assert found is not None
    monkeypatch.setattr(turning, "LEAST_RATIO", np.inf)
    assert turning.turning(trial) is None


def test_what_a_report_says_is_not_measured_again(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sight, "glance", lambda *_, **__: pytest.fail("measured"))
    assert turning.turning(replace(trial, way="rows")) is not None


def test_what_is_not_seen_in_time_stays_as_it_is(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sight, "SEEN_SHARE", 0.0)
    assert turning.turning(trial) is None


def test_what_is_searched_is_what_was_looked_at(trial: Trial) -> None:
    """Steps on small rows are written without a loop where a model is read."""
    small = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 13]> g (float[16, 256, 256] x, float[256] w) => (float[16, 256, 256] y)
        { a = Mul(x, w) b = Sigmoid(a) c = Tanh(b) y = Softmax<axis = -1>(c) }"""
    )
    onnx.save(small, trial.original)
    found = turning.turning(replace(trial, program=understand(load(trial.original)), way="rows"))
    assert found is not None
    assert "Scan" in [node.op_type for node in found.trial.program.model.graph]


def test_branches_are_not_computed_so(trial: Trial) -> None:
    assert turning.turning(replace(trial, is_branch=True, way="rows")) is None


@pytest.mark.parametrize("kind", ["wide", "otherwise"])
def test_rows_are_looked_at_beside_what_they_are_of(trial: Trial, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    asked = []
    monkeypatch.setattr(sight, "glance", lambda before, *_, **__: asked.append(before) or 1.0)
    wide = trial.folder / "wide.onnx"
    other = replace(trial, wide=wide) if kind == "wide" else trial
    turning.turning(replace(other, program=replace(trial.program, otherwise=kind == "otherwise")))
    assert asked == [wide if kind == "wide" else trial.folder / "batch-otherwise.onnx"]
    assert asked[0].exists() is (kind == "otherwise")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), VerificationFailed("it differs"), OutOfTime("over")])
def test_what_gained_in_one_way_is_not_lost_in_the_next(
    trial: Trial, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    monkeypatch.setattr(variants, "CLEARLY", 0.0)

    def solve(own: Trial, _: float) -> Attempt:
        if own.branched or own.is_branch:
            return Attempt([], accepted=own.branched, reason="nothing was found")
        raise error

    told, tried = variants.attempted(replace(trial, limit=1e3), solve)
    assert (told.way, tried.accepted) == ("rows", True)
    assert tried.interrupted is isinstance(error, KeyboardInterrupt)


@pytest.mark.parametrize(("ratio", "order"), [(1.1, ["rows", "whole"]), (1.0, ["whole", "rows"])])
def test_rows_that_gain_by_themselves_are_tried_first(
    trial: Trial, monkeypatch: pytest.MonkeyPatch, ratio: float, order: list[str]
) -> None:
    tried = []
    monkeypatch.setattr(sight, "glance", lambda *_, **__: ratio)

    def solve(own: Trial, _: float) -> Attempt:
        tried.append("branch" if own.is_branch else "rows" if own.branched else "whole")
        return Attempt([], reason="nothing was found")

    variants.attempted(replace(trial, limit=1e3), solve)
    assert [way for way in tried if way != "branch"] == order


@pytest.mark.parametrize("order", [1.1, 1.0])
def test_an_interrupt_ends_all_ways(trial: Trial, monkeypatch: pytest.MonkeyPatch, order: float) -> None:
    tried = []
    monkeypatch.setattr(sight, "glance", lambda *_, **__: order)

    def solve(own: Trial, _: float) -> Attempt:
        if own.is_branch:
            return Attempt([], reason="nothing was found")
        tried.append(own.branched)
        return Attempt([], accepted=len(tried) == 1, interrupted=len(tried) == 2, reason="nothing was found")

    monkeypatch.setattr(variants, "hoisting", lambda trial: replace(trial))
    _, found = variants.attempted(replace(trial, limit=1e3), solve)
    assert len(tried) == 2
    assert (found.accepted, found.interrupted) == (True, True)


def test_where_nothing_gains_the_model_as_it_stands_is_told_of(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sight, "glance", lambda *_, **__: 2.0)

    def solve(own: Trial, _: float) -> Attempt:
        if own.branched or own.is_branch:
            return Attempt([], reason="it took too long")
        raise OutOfTime("over")

    told, found = variants.attempted(replace(trial, limit=1e3), solve)
    assert told.program is trial.program
    assert not found.accepted


def test_a_replay_that_gains_nothing_says_why(trial: Trial) -> None:
    def solve(own: Trial, _: float) -> Attempt:
        if own.branched:
            return Attempt([], reason="the gain was not confirmed")
        raise UsageError("nothing fits")

    _, found = variants.attempted(replace(trial, way="rows", limit=1e3), solve)
    assert found.reason.startswith("the gain was not confirmed")
    small = replace(trial, way="rows", program=understand(load(batch("1"))), limit=1e3)
    with pytest.raises(UsageError, match="of a model with rows computed one after the other, which this one cannot be"):
        variants.attempted(small, solve)


@pytest.mark.parametrize("gains", ["rows", "whole", None])
def test_the_next_run_tries_the_way_that_gained_most_alone(
    trial: Trial, monkeypatch: pytest.MonkeyPatch, gains: str | None
) -> None:
    tried = []
    monkeypatch.setattr(sight, "glance", lambda *_, **__: 2.0)

    def solve(own: Trial, _: float) -> Attempt:
        way = "branch" if own.is_branch else "rows" if own.branched else "whole"
        tried.append(way)
        return Attempt([], accepted=way == gains, reason="nothing was found")

    memory = Memory(Table(trial.folder / "table"), trial.bench.runtime.key, "way", 9.0)
    for _ in range(2):
        variants.attempted(replace(trial, limit=1e3), solve, memory)
        tried = [way for way in tried if way != "branch"] + ["next"]
    assert tried == ["rows", "whole", "next", gains or "whole", "next"]
    variants.attempted(replace(trial, limit=1e3), solve, replace(memory, limit=99.0))
    assert [way for way in tried[5:] if way != "branch"] == ["rows", "whole"]
