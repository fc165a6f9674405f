"""Bodies of loops are optimized as models of their own, and branches in them; the whole is compared and measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import superopt
from superopt.api import Options
from superopt.cost.measured import MeasuredCost
from superopt.errors import InvalidModel, NoRoom, OutOfTime, RuntimeFailed, SuperoptError, VerificationFailed
from superopt.onnx_io import Branch, load, understand
from superopt.search.accepting.trial import Attempt, Trial
from superopt.search.branches import _share
from superopt.search.settings import Setting
from superopt.search.variants import attempted
from tests.models import normalized, weight
from tests.onnx_io.models import model
from tests.onnx_io.networks import run
from tests.onnx_io.otherwise.series.test_recurrences import series
from tests.search.test_branches import IMAGE, solve, trial

TURNS = 3


def looped(part: onnx.ModelProto | None = None, scan: bool = False) -> onnx.ModelProto:
    """A model that adds up what another one gives of its image, and of a state that each turn makes smaller; or, as a
    Scan, what that gives of three images.
    """
    part = part or normalized()
    nodes = [onnx.NodeProto.FromString(n.SerializeToString()) for n in part.graph.node]
    answer = part.graph.output[0]
    shape = [d.dim_value for d in answer.type.tensor_type.shape.dim]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in ("sum", "more")]
    image = onnx.ValueInfoProto.FromString(part.graph.input[0].SerializeToString())
    nodes.append(helper.make_node("Add", ["sum", answer.name], ["more"]))
    if scan:
        body = helper.make_graph(nodes, "turn", [ends[0], image], [ends[1]])
        node = helper.make_node("Scan", ["zero", "images"], ["total"], body=body, num_scan_inputs=1)
        given = [helper.make_tensor_value_info("images", TensorProto.FLOAT, [TURNS, 1, 3, 28, 28])]
    else:
        less = helper.make_tensor_value_info("less", TensorProto.FLOAT, [1, 3, 28, 28])
        nodes += [helper.make_node("Mul", ["image", "half"], ["less"]), helper.make_node("Identity", ["go"], ["on"])]
        counting = [helper.make_tensor_value_info("i", TensorProto.INT64, []),
                    helper.make_tensor_value_info("go", TensorProto.BOOL, [])]  # fmt: skip
        on = helper.make_tensor_value_info("on", TensorProto.BOOL, [])
        body = helper.make_graph(nodes, "turns", [*counting, ends[0], image], [on, ends[1], less])
        node = helper.make_node("Loop", ["turns", "", "zero", "images"], ["total", "left"], body=body)
        given = [helper.make_tensor_value_info("images", TensorProto.FLOAT, [1, 3, 28, 28])]
    held = {"zero": np.zeros(shape, np.float32), "turns": np.int64(TURNS), "half": np.float32(0.5)}
    weights = [*part.graph.initializer, *(numpy_helper.from_array(np.asarray(a), n) for n, a in held.items())]
    outputs = [helper.make_tensor_value_info("total", TensorProto.FLOAT, shape)]
    graph = helper.make_graph([node], "looped", given, outputs, weights)
    return helper.make_model(graph, opset_imports=part.opset_import, ir_version=part.ir_version)


def operators(graph: onnx.GraphProto) -> Iterator[str]:
    """Those within the nodes of a graph."""
    for node in graph.node:
        for attribute in node.attribute:
            yield from (n.op_type for n in attribute.g.node)
            yield from operators(attribute.g)


def test_a_body_is_optimized_and_the_rest_survives(options: Options) -> None:
    given = looped()
    result = superopt.optimize(given, options)
    made = result.proto()
    onnx.checker.check_model(made, full_check=True)
    assert result.report.outcome == "faster"
    assert (made.graph.input, made.graph.output) == (given.graph.input, given.graph.output)
    assert "LRN" in operators(given.graph)
    assert "LRN" not in operators(made.graph)
    np.testing.assert_allclose(run(made, {"images": IMAGE})[0], run(given, {"images": IMAGE})[0], rtol=1e-3, atol=1e-4)


def test_so_is_that_of_a_scan(cost: MeasuredCost, tmp_path: Path) -> None:
    given = looped(scan=True)
    _, tried = attempted(trial(given, cost, tmp_path), solve)
    assert tried.accepted
    assert tried.candidate is not None
    made, feeds = onnx.load(tried.candidate), {"images": np.stack([IMAGE, 2 * IMAGE, -IMAGE])}
    assert "LRN" not in operators(made.graph)
    np.testing.assert_allclose(run(made, feeds)[0], run(given, feeds)[0], rtol=1e-3, atol=1e-4)


def test_a_branch_within_a_body_is_optimized(cost: MeasuredCost, tmp_path: Path) -> None:
    """One that the number of the turn decides: of the turn's own model that is an input."""
    part = normalized()
    held = [onnx.NodeProto.FromString(n.SerializeToString()) for n in part.graph.node[2:]]
    then = helper.make_graph(held, "then", [], [part.graph.output[0]])
    plain = [helper.make_node("LRN", ["r"], ["level"], size=3), helper.make_node("Conv", ["level", "last"], ["plain"])]
    shown = helper.make_tensor_value_info("plain", TensorProto.FLOAT, [1, 8, 28, 28])
    other = helper.make_graph(plain, "other", [], [shown])
    del part.graph.node[2:]
    chosen = helper.make_node("If", ["is"], ["chosen"], then_branch=then, else_branch=other)
    part.graph.node.extend([helper.make_node("Equal", ["i", "one"], ["is"]), chosen])
    part.graph.output[0].name = "chosen"
    part.graph.initializer.append(numpy_helper.from_array(np.int64(1), "one"))
    given = looped(part)
    _, tried = attempted(trial(given, cost, tmp_path), solve)
    assert tried.accepted
    assert tried.candidate is not None
    made = onnx.load(tried.candidate)
    assert "LRN" not in operators(made.graph)
    assert "If" in operators(made.graph)
    assert len(tried.branches) == 3, "of the body, and of two branches in it"
    np.testing.assert_allclose(run(made, {"images": IMAGE})[0], run(given, {"images": IMAGE})[0], rtol=1e-3, atol=1e-4)


def test_a_difference_in_a_body_is_seen(cost: MeasuredCost, tmp_path: Path) -> None:
    own = trial(looped(), cost, tmp_path)
    other = looped()
    other.graph.initializer[2].CopyFrom(numpy_helper.from_array(weight(8, 64, 1, 1, seed=5), "last"))
    program = understand(load(other))
    with pytest.raises(VerificationFailed, match="differs from the original"):
        solve(replace(own, program=program, settings=(Setting(),), branched=True), 1.0)


def test_bodies_get_no_more_of_the_time_than_they_have_of_the_nodes(cost: MeasuredCost, tmp_path: Path) -> None:
    own = trial(looped(), cost, tmp_path)
    body = understand(load(normalized()))
    assert 0.5 < _share(own, {Branch(0, "body"): replace(own, program=body)}) <= 0.7
    wide = replace(own, program=body)
    assert 0.3 < _share(wide, {Branch(0, "body"): wide}) < 0.4
    assert _share(wide, {Branch(0, "then_branch"): wide}) == 0.7


SHARING = """g (float[2] x, float[2] z) => (float[2] y) <bool go = {1}, int64 n = {3}> { y = Loop(n, go, z)
  <body = b (int64 i, bool c, float[2] h) => (bool d, float[2] r) { d = Identity(c) a = Tanh(x) r = Add(h, a) }> }"""
FAILING = [None, VerificationFailed("it differs"), InvalidModel("it is none"), RuntimeFailed("it crashes")]


@pytest.mark.parametrize("wrong", FAILING, ids=str)
def test_what_turns_share_is_computed_before_them_unless_that_differs_or_fails(
    wrong: SuperoptError | None, cost: MeasuredCost, tmp_path: Path
) -> None:
    def accepts(own: Trial, share: float) -> Attempt:
        if own.branched and wrong:
            raise wrong
        return Attempt([], accepted=own.branched, reason="nothing is faster")

    told, tried = attempted(trial(model(SHARING), cost, tmp_path), accepts)
    assert (told.branched, tried.accepted) == (not wrong, not wrong)
    assert [n.op_type for n in told.program.model.graph] == (["Loop"] if wrong else ["Tanh", "Loop"])
    assert tried.reason.endswith(str(wrong) if wrong else "is computed apart from them")


@pytest.mark.parametrize("wrong", [None, VerificationFailed("it differs")], ids=str)
def test_what_gains_nothing_with_nodes_written_otherwise_is_tried_without(
    wrong: SuperoptError | None, cost: MeasuredCost, tmp_path: Path
) -> None:
    seen: list[int] = []

    def accepts(own: Trial, share: float) -> Attempt:
        seen.append(len(own.program.model.graph))
        if own.program.plain is not None and wrong:
            raise wrong
        return Attempt([], accepted=own.program.plain is None, reason="nothing is faster")

    told, tried = attempted(trial(model(series()), cost, tmp_path), accepts)
    assert tried.accepted
    assert seen[0] < seen[1] == len(told.program.model.graph)


@pytest.mark.parametrize("late", [OutOfTime("it is late"), NoRoom("there is none")], ids=str)
def test_what_is_not_about_what_turns_share_ends_the_search(
    late: SuperoptError, cost: MeasuredCost, tmp_path: Path
) -> None:
    def fails(own: Trial, share: float) -> Attempt:
        raise late

    with pytest.raises(type(late)):
        attempted(trial(model(SHARING), cost, tmp_path), fails)


def test_a_model_that_differs_by_what_its_turns_share_is_not_searched(
    cost: MeasuredCost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []

    def looks(own: Trial, share: float) -> Attempt:
        seen.append(own.branched)
        return Attempt([], reason="nothing is faster")

    wrong = load(model(SHARING.replace("Tanh", "Exp")))
    monkeypatch.setattr("superopt.search.hoisting.apart", lambda program: wrong)
    _, tried = attempted(trial(model(SHARING), cost, tmp_path), looks)
    assert "differs from the original" in tried.reason
    assert not any(seen)


def test_a_body_of_a_loop_alone_is_looked_into(cost: MeasuredCost, tmp_path: Path) -> None:
    seen: list[list[str]] = []

    def looks(own: Trial, share: float) -> Attempt:
        seen.append([n.op_type for n in own.program.model.graph])
        return Attempt([], reason="nothing is faster")

    given = model("""g (float[2] x) => (float[2] y) <bool go = {1}, int64 n = {3}> { y = Loop(n, go, x)
      <body = b (int64 i, bool c, float[2] h) => (bool d, float[2] r) { d = Identity(c)
        r = Loop(n, go, h) <body = p (int64 j, bool e, float[2] k) => (bool f, float[2] q)
          { f = Identity(e) a = Tanh(k) q = Mul(a, a) }> }> }""")
    attempted(trial(given, cost, tmp_path), looks)
    assert seen == [["Tanh", "Mul"], ["Loop"], ["Loop"]]
