"""Acceptance of whole models: what differs is never written, what is not faster is not taken."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import superopt
from superopt.api import Options
from superopt.cost.bench import Bench
from superopt.cost.child import Child, Here, Unending
from superopt.cost.measured import MeasuredCost
from superopt.cost.ort import OnnxRuntime
from superopt.cost.runtime import Runtime
from superopt.cost.table import Table
from superopt.errors import InvalidModel, NoRoom, OutOfTime, RuleError, SuperoptError, VerificationFailed
from superopt.onnx_io import Program, load
from superopt.rules.format import parse_file
from superopt.search import deciding, paired, piecewise
from superopt.search.accepting import judge, same
from superopt.search.accepting.laid import Value
from superopt.search.accepting.trial import Attempt
from superopt.search.objectives.latency import Latency
from superopt.search.paired import Paired, Timed
from superopt.search.replay import Placement
from superopt.search.rewriting.rewrites import ByRule, Unfold
from superopt.search.solving import plan, solve
from superopt.search.strategies.found import TOO_DEEP, Outcome
from tests.fragile import Fragile
from tests.models import model, normalized, unsimplified, weight
from tests.search.trying import tried

WRONG = "(rule wrong (given (?x n c h w)) (from (lrn 5 :alpha 0.10000000149011612 ?x)) (to (relu ?x)))"


def test_where_a_candidate_cannot_be_written_the_original_comes_back(
    cost: MeasuredCost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rewritten(*_: object) -> None:
        raise SuperoptError("it would make a cycle")

    monkeypatch.setattr("superopt.search.accepting.judge.rewritten", rewritten)
    found = tried(normalized(), [Unfold("lrn")], cost, tmp_path)
    assert (found.accepted, found.candidate) == (False, None)
    assert found.reason == "what was found cannot be written: it would make a cycle"


def test_a_candidate_that_differs_is_an_error(cost: MeasuredCost, tmp_path: Path) -> None:
    """A wrong rule, as no file could bring it in: it is fast, and it is refused by its outputs."""
    (rule,) = parse_file(WRONG).rules
    with pytest.raises(VerificationFailed, match="differs from the original"):
        tried(normalized(), [ByRule(rule)], cost, tmp_path)


def test_where_a_candidate_is_no_valid_model_the_original_is_the_answer(
    cost: MeasuredCost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(model: object, name: str) -> None:
        raise InvalidModel(f"{name}: fails onnx's check: sizes")

    monkeypatch.setattr("superopt.search.accepting.judge.check", refuse)
    found = tried(normalized(), [Unfold("lrn")], cost, tmp_path)
    assert not found.accepted
    assert "the optimized model: fails onnx's check: sizes; nothing was written" in found.reason
    assert found.alone is not None, "the original was measured"


def test_where_a_candidate_does_not_run_the_original_is_the_answer(
    cost: MeasuredCost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the runtime makes of some of its nodes what it then cannot load."""
    real = judge.written

    def broken(program: Program, placed: Placement, path: Path) -> Path:
        real(program, placed, path).write_bytes(b"what no runtime loads")
        return path

    monkeypatch.setattr("superopt.search.accepting.judge.written", broken)
    found = tried(normalized(), [Unfold("lrn")], cost, tmp_path)
    assert not found.accepted
    assert found.reason.startswith("what was found cannot be used, which is a bug: candidate: ")
    assert found.alone is not None, "the original was measured"


def test_a_difference_counts_also_beside_an_output_that_shows_nothing(cost: MeasuredCost, tmp_path: Path) -> None:
    given = normalized()
    given.graph.node.append(helper.make_node("Mul", ["image", "nil"], ["silent"]))
    given.graph.initializer.append(onnx.numpy_helper.from_array(np.zeros(1, np.float32), "nil"))
    given.graph.output.append(helper.make_tensor_value_info("silent", TensorProto.FLOAT, [1, 3, 28, 28]))
    (rule,) = parse_file(WRONG).rules
    with pytest.raises(VerificationFailed, match='"answer"'):
        tried(given, [ByRule(rule)], cost, tmp_path)


def test_where_what_is_left_of_a_candidate_differs_the_original_is_the_answer(
    cost: MeasuredCost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = deciding.judged, list[Attempt]()

    def judging(*given: Any) -> Attempt:
        calls.append(given[0])
        if len(calls) == 2:
            raise VerificationFailed("it differs")
        return real(*given)

    alone = Timed(0.01, 0.01, 0.01, 10, 100)
    open_still = Paired(alone, alone, 1.0, 0.99, 1.01, 10, 100, (1.0,) * 10)
    monkeypatch.setattr("superopt.search.accepting.judge.compare", lambda *_, **__: open_still)
    monkeypatch.setattr("superopt.search.deciding.judged", judging)
    monkeypatch.setattr("superopt.search.deciding.surest", lambda tried, *_: list(tried.cover))
    found = tried(normalized(), [Unfold("lrn")], cost, tmp_path)
    assert (found.accepted, len(calls)) == (False, 2)
    assert found.reason.endswith("; without pieces that gain nothing in the whole model, it differs")


def test_where_nothing_can_be_written_to_be_timed_that_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unwritable(*_: object) -> None:
        raise NoRoom("no folder can be made: No space left on device; make room, or name another by TMPDIR")

    monkeypatch.setattr("superopt.onnx_io.drawn_weights.temporary_folder", unwritable)
    with Table(Path(":memory:")) as empty, closing(Child()) as child:
        cost = MeasuredCost(Bench(OnnxRuntime(), empty, opset=17, child=child))
        with pytest.raises(NoRoom, match="No space left on device; make room, or name another by TMPDIR"):
            tried(normalized(), [Unfold("lrn")], cost, tmp_path)


def test_a_sum_of_a_thousand_summands_does_not_end_it(cost: MeasuredCost, tmp_path: Path) -> None:
    count = 1000
    given = normalized()
    given.graph.node.extend(helper.make_node("Relu", ["image"], [f"r{i}"]) for i in range(count))
    given.graph.node.append(helper.make_node("Sum", [f"r{i}" for i in range(count)], ["sum"]))
    given.graph.output.append(helper.make_tensor_value_info("sum", TensorProto.FLOAT, [1, 3, 28, 28]))
    found = tried(given, [Unfold("lrn")], cost, tmp_path, limit=30)
    assert any(s.gain > 1.0 for s in found.solved), "the rest of it is searched"


def test_a_piece_that_is_too_deep_is_left_as_it_is(cost: MeasuredCost, tmp_path: Path) -> None:
    def deep(*_: object) -> Outcome:
        raise RecursionError

    found = tried(normalized(), [Unfold("lrn")], cost, tmp_path, strategy=deep)
    assert {(s.outcome.reason, s.gain) for s in found.solved} == {(TOO_DEEP, 1.0)}
    assert (found.accepted, found.reason) == (False, "no rewrite makes a piece of it faster")


def test_a_candidate_that_is_not_compared_in_time_is_no_answer(
    cost: MeasuredCost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = same.ran

    def ran(runtime: Runtime, model: Path, *rest: Any) -> tuple[str, list[list[Value]]]:
        if model.name == "candidate.onnx":
            raise Unending("it did not end within 3 s")
        return real(runtime, model, *rest)

    monkeypatch.setattr("superopt.search.accepting.same.ran", ran)
    monkeypatch.setattr(cost.bench, "child", Here())
    found = tried(normalized(), [Unfold("lrn")], cost, tmp_path)
    assert not found.accepted
    assert found.reason == (
        "a candidate took too long to be compared: it did not end within 3 s; allow more with --time"
    )


def test_a_model_without_nodes_that_no_output_needs_is_faster_though_no_piece_is(
    cost: MeasuredCost, tmp_path: Path
) -> None:
    nodes = [helper.make_node("Conv", ["x", k], [y], pads=[1] * 4) for k, y in (("k", "y"), ("other", "idle"))]
    weights = {"k": weight(32, 32, 3, 3), "other": weight(32, 32, 3, 3, seed=1)}
    shape = (1, 32, 56, 56)
    found = tried(model(nodes, [("x", 1, shape)], [("y", 1, shape)], weights), [], cost, tmp_path)
    assert found.accepted
    assert [s.gain for s in found.cover] == [1.0]


@pytest.mark.parametrize("later", [1.2, 1.0])
def test_a_candidate_that_is_not_confirmed_is_tried_without_what_gains_nothing_and_has_to_be_surer(
    cost: MeasuredCost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, later: float
) -> None:
    asked: list[int] = []

    def compare(*_: object, **given: int) -> Paired:
        asked.append(given["asked"])
        ratio, alone = (1.0, later)[len(asked) - 1], Timed(0.01, 0.01, 0.01, 10, 100)
        return Paired(alone, alone, ratio, ratio - 0.01, ratio + 0.01, 10, 100, (ratio,) * 10)

    monkeypatch.setattr("superopt.search.accepting.judge.compare", compare)
    monkeypatch.setattr("superopt.search.deciding.surest", lambda tried, *_: list(tried.cover))
    found = tried(normalized(), [Unfold("lrn")], cost, tmp_path)
    assert asked == [1, 2]
    assert found.accepted == (later > 1.0)
    assert found.pairs[0][1].ratio == later
    confirmed = "confirmed in fresh sessions, without pieces that gain nothing in the whole model"
    assert found.reason == (confirmed if found.accepted else "the gain was not confirmed in fresh sessions")


@pytest.mark.parametrize("settings", [1, 3])
def test_without_time_to_judge_what_it_finds_nothing_is_searched(
    cost: MeasuredCost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: int
) -> None:
    inference_s = 0.5 / settings
    all_s = plan.COMPARING_RUNS * inference_s + settings * paired.measuring_s(inference_s, 0.0, at_least=True)
    monkeypatch.setattr(Latency, "seconds", lambda self, costs: inference_s)
    found = tried(normalized(), [Unfold("lrn")], cost, tmp_path, settings=settings)
    assert (found.accepted, found.solved) == (False, [])
    takes = f"comparing and measuring a candidate takes about {all_s:.0f} s"
    said = re.fullmatch(rf"{re.escape(takes)}; allow (\d+)0 s more with --time", found.reason)
    assert said is not None
    assert int(said[1]) > 0


def test_a_long_model_is_searched_where_it_can_be_measured_at_least(
    cost: MeasuredCost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual, least = (plan.COMPARING_RUNS + paired.measuring_s(1.0, 0.0, at_least) for at_least in (False, True))
    limit = 1000.0
    for runs, searched in ((usual, True), ((usual + least) / 2, True), (0.99 * least, False)):
        monkeypatch.setattr(Latency, "seconds", lambda self, costs, runs=runs: limit / runs)
        found = tried(normalized(), [Unfold("lrn")], cost, tmp_path, limit=limit)
        assert bool(found.solved) == searched


@pytest.mark.parametrize(("chooses", "once", "most", "latest"), [(False, 0.15, 0.2, 0.23), (True, 0.45, 0.45, 0.65)])
def test_a_search_has_more_of_the_time_where_sessions_choose_algorithms(
    chooses: bool,
    once: float,
    most: float,
    latest: float,
    cost: MeasuredCost,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    given: list[float] = []

    def shared(groups: object, known: object, search: object, times: plan.Times, progress: object) -> None:
        given.extend((times.once_s, times.once_most_s, times.latest - time.monotonic()))
        raise plan.TooShort("they are known")

    monkeypatch.setattr(OnnxRuntime, "chooses_algorithms", chooses)
    monkeypatch.setattr(piecewise, "solve", shared)
    tried(normalized(), [], cost, tmp_path, limit=1e6)
    assert given == pytest.approx([once * 1e6, most * 1e6, latest * 1e6], rel=1e-3)


def test_what_reading_the_model_and_the_rules_took_is_of_the_time_limit(cost: MeasuredCost, tmp_path: Path) -> None:
    cost.bench.deadline = math.inf
    assert tried(normalized(), [Unfold("lrn")], cost, tmp_path).accepted, "all kernels are known from here on"
    found = tried(normalized(), [Unfold("lrn")], cost, tmp_path, limit=12, gone=12)
    assert (found.accepted, found.solved) == (False, [])
    assert found.reason.endswith("allow more with --time")


def test_where_its_kernels_take_all_the_time_that_is_what_is_said(
    cost: MeasuredCost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pipelines of a thousand small nodes: their kernels take seconds to time, and the whole model none. Where some
    were not timed, what the whole model takes is not known.
    """

    def late(*asked: object) -> dict[object, float]:
        starts: dict[object, float] = start_costs(*asked)
        cost.bench.deadline = time.monotonic()
        return starts

    start_costs: Callable[..., dict[object, float]] = solve._start_costs
    monkeypatch.setattr(solve, "_start_costs", late)
    monkeypatch.setattr(solve, "STARTING_SHARE", 0.0)
    found = tried(normalized(), [Unfold("lrn")], cost, tmp_path)
    assert (found.accepted, found.solved) == (False, [])
    assert found.reason == "timing its kernels took all the time that there is for a search; allow more with --time"


def test_a_candidate_that_takes_too_long_to_measure_is_no_answer(
    cost: MeasuredCost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = []

    def compare(*_: object, most_s: float, **__: object) -> None:
        given.append(most_s)
        raise OutOfTime("measuring takes about 9 s")

    monkeypatch.setattr("superopt.search.accepting.judge.compare", compare)
    found = tried(normalized(), [Unfold("lrn")], cost, tmp_path, limit=4)
    assert not found.accepted
    assert re.fullmatch(r"measuring takes about 9 s, and [0-4] s were left; allow more with --time", found.reason)
    assert 0.4 <= given[0] <= 4.4


def test_a_model_that_crashes_the_runtime_comes_back_and_the_kernel_is_named(
    table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    nodes = [helper.make_node("Sqrt", ["x"], ["h"]), helper.make_node("Relu", ["h"], ["y"])]
    given = model(nodes, [("x", TensorProto.FLOAT, (2, 3))], [("y", TensorProto.FLOAT, (2, 3))])
    cost = MeasuredCost(Bench(Fragile(1), table, 17, lock_directory=tmp_path))
    found = tried(given, [Unfold("lrn")], cost, tmp_path)
    assert not found.accepted
    assert "the runtime crashed (SIGABRT)" in found.reason
    assert "(kernel (sqrt ?v0)" in found.reason


def test_a_wrong_rule_in_a_file_is_refused_before_it_is_tried(options: Options, tmp_path: Path) -> None:
    path = tmp_path / "w.rules"
    path.write_text(WRONG)
    with pytest.raises(RuleError, match="rule wrong does not prove"):
        superopt.optimize(normalized(), replace(options, rules=(path,)))


def test_a_right_rewrite_is_accepted_and_confirmed(cost: MeasuredCost, tmp_path: Path) -> None:
    found = tried(normalized(), [Unfold("lrn")], cost, tmp_path)
    assert (found.accepted, found.reason) == (True, "confirmed in fresh sessions")
    assert found.agreement is not None
    assert found.agreement.agrees
    assert [paired.low > 1.0 for _, paired in found.pairs] == [True]


def test_constants_that_the_runtime_makes_anew_are_a_gain_without_any_rewrite(
    cost: MeasuredCost, tmp_path: Path
) -> None:
    found = tried(unsimplified(6, side=56), [], cost, tmp_path)
    assert (found.accepted, found.reason) == (True, "confirmed in fresh sessions")
    assert found.candidate is not None
    assert "CastLike" not in {node.op_type for node in load(found.candidate).graph}


def test_they_are_weights_within_what_is_rewritten_too(cost: MeasuredCost, tmp_path: Path) -> None:
    (rule,) = parse_file("(rule once (given (?x n c h w)) (from (relu (relu ?x))) (to (relu ?x)))").rules
    found = tried(unsimplified(6, side=56, relus=3), [ByRule(rule)], cost, tmp_path)
    assert (found.accepted, [s.gain > 1.0 for s in found.cover]) == (True, [True] * len(found.cover))
    assert found.candidate is not None
    assert {node.op_type for node in load(found.candidate).graph} == {"Conv", "BatchNormalization", "Relu"}


def test_without_rewrites_the_original_is_measured_alone(cost: MeasuredCost, tmp_path: Path) -> None:
    found = tried(normalized(), [], cost, tmp_path)
    assert (found.accepted, found.candidate, found.pairs) == (False, None, [])
    assert found.alone is not None
    assert found.alone.seconds > 0


def test_what_measures_as_the_original_is_no_rewrite(cost: MeasuredCost, tmp_path: Path) -> None:
    """Addition the other way round is another graph and no gain."""
    ends = [(n, TensorProto.FLOAT, [64, 256]) for n in "xzy"]
    given = model(
        [helper.make_node("Add", ["x", "z"], ["a"]), helper.make_node("Relu", ["a"], ["y"])], ends[:2], ends[2:]
    )
    text = "(rule swap (given (?x n c) (?y n c)) (from (relu (add ?x ?y))) (to (relu (add ?y ?x))))"
    (rule,) = parse_file(text).rules
    found = tried(given, [ByRule(rule)], cost, tmp_path)
    assert not found.accepted
    assert found.reason


def test_every_rewrite_in_a_report_says_how_it_is_known(options: Options) -> None:
    report = superopt.optimize(normalized(), options).report
    assert report.rewrites
    for rewrite in json.loads(report.model_dump_json())["rewrites"]:
        assert rewrite["known"] in ("proved", "definition")
        assert bool(rewrite["by"]) == (rewrite["known"] == "proved")
        assert rewrite["times"] >= 1
        assert rewrite["value"] in {"c", "r", "normal", "answer"}
