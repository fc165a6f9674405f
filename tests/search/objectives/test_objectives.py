"""Other objectives than time: what takes less and is not slower is the answer, and nothing else is."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import superopt
from superopt.api import Options, Result, replay
from superopt.cost.bench import Bench
from superopt.cost.layouts import ALONE
from superopt.cost.measured import MeasuredCost
from superopt.cost.ort import OnnxRuntime
from superopt.cost.table import Table
from superopt.errors import RuntimeFailed, UsageError
from superopt.onnx_io import load, understand
from superopt.operators.pointwise import Relu
from superopt.search.accepting import judge
from superopt.search.objectives.bytes_taken import Peak, Size
from superopt.search.objectives.objective import Weighed
from superopt.search.paired import Paired, Timed
from superopt.search.report import Report
from superopt.search.settings import Setting
from superopt.search.strategies.found import Found, Outcome
from superopt.shipped import shipped_rules
from superopt.term import Graph, variable
from tests.models import assert_same, model, weight

SIDE = 128


def branches() -> onnx.ModelProto:
    """Two convolutions of one image, added."""
    nodes = [
        helper.make_node("Conv", ["x", "v"], ["a"], pads=[1] * 4),
        helper.make_node("Conv", ["x", "w"], ["b"], pads=[1] * 4),
        helper.make_node("Add", ["a", "b"], ["y"]),
    ]
    ends = [("x", TensorProto.FLOAT, [1, 32, 28, 28]), ("y", TensorProto.FLOAT, [1, 32, 28, 28])]
    weights = {name: weight(32, 32, 3, 3, seed=i) for i, name in enumerate("vw")}
    return model(nodes, ends[:1], ends[1:], weights)


def enlarged() -> onnx.ModelProto:
    """An image that is enlarged before its channels become fewer."""
    weights = {"w": weight(16, 32, 1, 1), "scales": np.array([1, 1, 2, 2], np.float32)}
    nodes = [
        helper.make_node("Resize", ["x", "", "scales"], ["large"], mode="nearest",
                         coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
        helper.make_node("Conv", ["large", "w"], ["y"]),
    ]  # fmt: skip
    ends = [("x", TensorProto.FLOAT, [1, 32, SIDE, SIDE]), ("y", TensorProto.FLOAT, [1, 16, 2 * SIDE, 2 * SIDE])]
    return model(nodes, ends[:1], ends[1:], weights)


@pytest.fixture(scope="module")
def enough(options: Options) -> Options:
    """The rules that are needed, of those that come with superopt, and time to search."""
    wanted = ("convolutions.rules", "spatial.rules")
    return dataclasses.replace(options, rules=tuple(f for f in shipped_rules() if f.name in wanted), time=20)


@pytest.fixture(scope="module")
def fewer_weights(enough: Options) -> Result:
    return superopt.optimize(branches(), dataclasses.replace(enough, objective="size"))


def taken(report: Report) -> float:
    assert report.taken is not None
    return report.taken.original / report.taken.optimized


def test_kernels_of_one_image_are_added_to_have_fewer_weights(fewer_weights: Result) -> None:
    result = fewer_weights
    assert (result.report.outcome, result.report.settings.objective) == ("smaller", "size")
    assert taken(result.report) == pytest.approx(2)
    assert result.report.optimized is not None
    assert result.report.optimized.bytes == 32 * 32 * 9 * 4
    assert_same(result.proto(), branches())


def test_channels_become_fewer_before_an_image_is_enlarged_to_take_less_memory(enough: Options) -> None:
    given = enlarged()
    result = superopt.optimize(given, dataclasses.replace(enough, objective="memory"))
    assert result.report.outcome == "smaller"
    assert taken(result.report) > 1.3
    told = result.report.taken
    assert told is not None
    assert told.original_counted == 4 * 4 * SIDE**2 * (32 + 16)
    assert told.optimized_counted == 4 * SIDE**2 * (16 + 4 * 16)
    assert_same(result.proto(), given)


def test_what_takes_less_and_is_slower_is_no_answer(enough: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    time = Timed(1.0, 1.0, 1.0, 5, 10)
    slower = Paired(time, time, 0.97, 0.96, 0.98, 5, 10, (0.97,) * 5)
    monkeypatch.setattr(judge, "compare", lambda *_, **__: slower)
    report = superopt.optimize(branches(), dataclasses.replace(enough, objective="size", seed=1)).report
    assert (report.outcome, report.reason) == ("original", "it is slower")


def test_what_takes_no_less_as_a_whole_is_no_answer(enough: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Size, "weigh", lambda *_: Weighed(100, 100))
    report = superopt.optimize(branches(), dataclasses.replace(enough, objective="size", seed=2)).report
    assert (report.outcome, report.reason) == ("original", "the whole model takes no less")


def test_where_bytes_cannot_be_measured_the_original_comes_back(
    enough: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    def weigh(*_: object) -> Weighed:
        raise RuntimeFailed("the peak of memory is not known here")

    monkeypatch.setattr(Size, "weigh", weigh)
    report = superopt.optimize(branches(), dataclasses.replace(enough, objective="size", seed=3)).report
    assert report.outcome == "original"
    assert report.reason == "it could not be measured: the peak of memory is not known here"


def test_where_no_bytes_are_left_the_gain_is_a_number_that_reports_hold(enough: Options) -> None:
    """All of the weights are joined to be cut off again."""
    nodes = [
        helper.make_node("Concat", ["x", "w"], ["both"], axis=1),
        helper.make_node("Slice", ["both", "zero", "some", "one"], ["first"]),
        helper.make_node("Relu", ["first"], ["y"]),
    ]
    ends = [(name, TensorProto.FLOAT, [1, 256, 28, 28]) for name in "xy"]
    sizes = {name: np.array([value]) for name, value in (("zero", 0), ("some", 256), ("one", 1))}
    given = model(nodes, ends[:1], ends[1:], {"w": weight(1, 256, 28, 28), **sizes})
    result = superopt.optimize(given, dataclasses.replace(enough, objective="size", rules=None))
    assert result.report.outcome == "smaller"
    assert all(np.isfinite(s.gain) for s in result.report.solutions)
    assert Report.model_validate_json(result.report.model_dump_json()) == result.report


def test_a_piece_that_takes_no_bytes_is_left(table: Table) -> None:
    x = variable("x", (4,))
    start, other = (Found(Graph((x,), (y,)), 0.0, (), measured=True) for y in (Relu()(x), x))
    size = Size(MeasuredCost(Bench(OnnxRuntime(), table, opset=17)))
    assert size.choose(Outcome(start, [other, start]), ALONE) == (start, 1.0, 0)


@pytest.mark.parametrize(("columns", "more"), [(16, 4 * 8 * 8), (4, 0)])
def test_what_weights_take_beyond_the_originals_is_no_less_memory(
    columns: int, more: int, table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Peak, "_peak", lambda *_: 1000)
    paths = []
    for count in (8, columns):
        ends = [("x", TensorProto.FLOAT, [2, 8]), ("y", TensorProto.FLOAT, [2, count])]
        made = model([helper.make_node("MatMul", ["x", "w"], ["y"])], ends[:1], ends[1:], {"w": weight(8, count)})
        paths.append(tmp_path / f"{count}.onnx")
        onnx.save(made, paths[-1])
    program, setting = understand(load(paths[0])), Setting()
    peak = Peak(MeasuredCost(Bench(OnnxRuntime(), table, opset=17)))
    weighed = peak.weigh(program, *paths, setting, 10.0)
    assert (weighed.original, weighed.candidate) == (1000, 1000 + more)


def test_a_replay_has_the_objective_of_its_report(fewer_weights: Result, enough: Options) -> None:
    again = replay(fewer_weights.report, branches(), enough)
    assert (again.report.outcome, taken(again.report)) == ("smaller", pytest.approx(2))


def test_an_objective_that_is_none_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match="objective is latency or memory or size; got speed"):
        Options(objective="speed")
