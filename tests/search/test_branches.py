"""Branches are optimized one by one; the whole is compared and measured with each of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

import superopt
from superopt.api import Options, replay
from superopt.cost.measured import MeasuredCost
from superopt.errors import VerificationFailed
from superopt.onnx_io import Branch, load, spliced, understand
from superopt.search.accepting.trial import Attempt, Trial
from superopt.search.objectives.latency import Latency
from superopt.search.optimize import attempt
from superopt.search.rewriting.rewrites import Unfold
from superopt.search.settings import Setting
from superopt.search.strategies.backtrack import backtrack
from superopt.search.variants import attempted
from tests.merged import by_rate, merged
from tests.models import normalized, weight
from tests.onnx_io.networks import run

IMAGE = np.random.default_rng(0).standard_normal((1, 3, 28, 28)).astype(np.float32)


def trial(given: onnx.ModelProto, cost: MeasuredCost, folder: Path) -> Trial:
    path = folder / "original.onnx"
    onnx.save(given, path)
    return Trial(understand(load(given)), path, path, folder, Latency(cost), 40, 0, [], lambda stage, done: None)


def solve(own: Trial, share: float) -> Attempt:
    return attempt(own, lambda: [Unfold("lrn")], backtrack, alpha=1.05)


def operators(model: onnx.ModelProto, branch: str) -> set[str]:
    (node,) = (n for n in model.graph.node if n.op_type == "If")
    (graph,) = (a.g for a in node.attribute if a.name == branch)
    return {n.op_type for n in graph.node}


def test_both_branches_are_optimized_and_the_rest_survives(options: Options) -> None:
    given = merged()
    result = superopt.optimize(given, options)
    made, report = result.proto(), result.report
    onnx.checker.check_model(made, full_check=True)
    assert report.outcome == "faster"
    assert (made.graph.input, made.graph.output) == (given.graph.input, given.graph.output)
    assert (made.opset_import, made.metadata_props) == (given.opset_import, given.metadata_props)
    for flag, branch in ((True, "then_branch"), (False, "else_branch")):
        assert "LRN" not in operators(made, branch)
        feeds = {"image": IMAGE, "flag": np.array([flag])}
        np.testing.assert_allclose(run(made, feeds)[0], run(given, feeds)[0], rtol=1e-3, atol=1e-4)
    assert report.measured is not None
    assert {"flag:true", "flag:false"} == {report.measured.shapes.split()[-1], report.elsewhere[0].shapes.split()[-1]}
    assert report.compared is not None
    assert report.compared.samples >= 10


@pytest.mark.parametrize(("rate", "other"), [(16000, 0), (8000, 16000)])
def test_the_choice_that_a_sample_makes_is_told_first(rate: int, other: int, options: Options) -> None:
    sample = {"image": IMAGE, "rate": np.array(rate)}
    report = superopt.optimize(by_rate(merged()), replace(options, inputs=(sample,))).report
    assert report.outcome == "faster"
    assert report.measured is not None
    assert [s.split()[-1] for s in (report.measured.shapes, report.elsewhere[0].shapes)] == [
        f"rate:{rate}",
        f"rate:{other}",
    ]


def test_what_was_found_in_branches_is_replayed(options: Options) -> None:
    given = merged()
    report = superopt.optimize(given, options).report
    again = replay(report, merged(), options)
    assert again.report.outcome == "faster"
    assert {s.piece for s in again.report.solutions} == {s.piece for s in report.solutions}
    assert all("LRN" not in operators(again.proto(), branch) for branch in ("then_branch", "else_branch"))


@pytest.mark.parametrize("wrong", ["then_branch", "else_branch"])
def test_a_difference_in_either_branch_is_seen(wrong: str, cost: MeasuredCost, tmp_path: Path) -> None:
    own = trial(merged(), cost, tmp_path)
    other = normalized()
    other.graph.initializer[2].CopyFrom(onnx.numpy_helper.from_array(weight(8, 64, 1, 1, seed=5), "other"))
    other.graph.node[-1].input[1] = "other"
    program = understand(spliced(own.program, {Branch(1, wrong): load(other)}))
    settings = tuple(Setting(deciding={"flag": flag}) for flag in (True, False))
    changed = replace(own, program=program, settings=settings, branched=True)
    with pytest.raises(VerificationFailed, match="differs from the original"):
        solve(changed, 1.0)


def test_where_the_whole_differs_with_its_branches_it_stays(
    cost: MeasuredCost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(own: Trial, share: float) -> Attempt:
        if own.branched:
            raise VerificationFailed("it differs")
        return solve(own, share)

    of, tried = attempted(trial(merged(), cost, tmp_path), fails)
    assert (of.branched, tried.accepted) == (False, False)
    assert tried.reason.endswith("of its branches: it differs")


def test_a_branch_that_makes_the_whole_slower_is_left_out(
    cost: MeasuredCost, tmp_path: Path, paired_by_flag: Callable[[str], None]
) -> None:
    paired_by_flag("false")
    _, tried = attempted(trial(merged(), cost, tmp_path), solve)
    assert tried.accepted
    assert tried.candidate is not None
    made = onnx.load(tried.candidate)
    assert "LRN" not in operators(made, "then_branch")
    assert "LRN" in operators(made, "else_branch")


@pytest.fixture
def paired_by_flag(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Has whole models with a flag set so measure as much slower, while both branches are others, and else as faster:
    what else this machine does might say so of one that runs no other branch.
    """
    from superopt.search.accepting import judge

    measured = judge._paired

    def slower(flag: str) -> None:
        def paired(tried: Attempt, own: Trial, candidate: Path, number: int) -> object:
            found = measured(tried, own, candidate, number)
            both = own.branched and "LRN" not in operators(onnx.load(candidate), "else_branch")
            lost = both and str(own.settings[number]).endswith(flag)
            if not own.branched:
                return found
            return (
                replace(found, ratio=0.5, low=0.4, high=0.6) if lost else replace(found, ratio=1.5, low=1.4, high=1.6)
            )

        monkeypatch.setattr(judge, "_paired", paired)

    return slower


def test_a_branch_that_never_runs_stays(cost: MeasuredCost, tmp_path: Path) -> None:
    """Where the model does not run with a flag, nothing could be said of what would run then."""
    broken = normalized()
    broken.graph.initializer.append(onnx.numpy_helper.from_array(np.int64([2]), "two"))
    broken.graph.node.insert(0, onnx.helper.make_node("Reshape", ["image", "two"], ["unused"]))
    _, tried = attempted(trial(merged(other=broken), cost, tmp_path), solve)
    assert tried.accepted
    assert tried.candidate is not None
    made = onnx.load(tried.candidate)
    assert "LRN" not in operators(made, "then_branch")
    assert "LRN" in operators(made, "else_branch")


def test_an_unknown_condition_leaves_the_model_as_it_is(cost: MeasuredCost, tmp_path: Path) -> None:
    given = merged()
    given.graph.node[0].CopyFrom(onnx.helper.make_node("Greater", ["mean", "zero"], ["condition"]))
    given.graph.node.insert(0, onnx.helper.make_node("ReduceMean", ["image"], ["mean"], keepdims=0))
    given.graph.initializer.append(onnx.numpy_helper.from_array(np.float32(0), "zero"))
    of, tried = attempted(trial(given, cost, tmp_path), solve)
    assert (of.branched, tried.accepted) == (False, False)
