"""Sizes that inputs are said to have: read, matched with the model's own, and tried."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from onnx import TensorProto, helper

import superopt
from superopt.api import Options
from superopt.cost.inputs import Draw
from superopt.cost.ort import OnnxRuntime
from superopt.errors import UsageError
from superopt.onnx_io import Program, load, understand
from superopt.search.accepting.trial import Trial
from superopt.search.paired import Paired, Timed, loses
from superopt.search.settings import Setting, assumed, read_shape, read_shapes, settings_of
from tests.models import model, normalized, weight
from tests.search.networks import write


def program() -> Program:
    ends = [("x", TensorProto.FLOAT, ["N", 3, "odd-name"]), ("z", TensorProto.FLOAT, ["N", None, 1])]
    nodes = [helper.make_node("Add", ["x", "z"], ["y"])]
    return understand(load(model(nodes, ends, [("y", TensorProto.FLOAT, ["N", 3, "odd-name"])])))


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("x:1..8,128", ("x", ((1, 8), (128, 128)))),
        ("a:b:4", ("a:b", ((4, 4),))),
        ("x:2, 3", ("x", ((2, 2), (3, 3)))),
    ],
)
def test_a_shape_is_an_input_and_sizes_or_ranges(text: str, read: object) -> None:
    assert read_shape(text) == read


def test_sizes_that_nobody_gave_are_told_as_they_are_taken() -> None:
    one_open = settings_of(program(), {"x": ((4, 4), (3, 3), (5, 5))})[0]
    all_said = settings_of(program(), {"x": ((4, 4), (3, 3), (5, 5)), "z": ((4, 4), (7, 7), (1, 1))})[0]
    assert assumed(program(), Setting(), Setting()) == {"x": "1,3,1", "z": "1,1,1"}
    assert assumed(program(), Setting(), all_said) == {"x": "4,3,5", "z": "4,7,1"}
    assert assumed(program(), one_open, one_open) == {"z": "4,1,1"}
    assert assumed(program(), all_said, all_said) == {}


@pytest.mark.parametrize("text", ["", "x", "x:", ":1", "x:-1", "x:2..1", "x:1...2", "x:n", "x:1,,2", "x:9999999999"])
def test_what_is_no_shape_is_refused_by_name(text: str) -> None:
    with pytest.raises(UsageError, match=r"cannot be read; write an input and its sizes, as in x:1\.\.8,128"):
        read_shape(text)


@pytest.mark.parametrize("text", ["x:0", "x:1,0", "x:0..8,128", "x: 00"])
def test_sizes_of_zero_are_refused_by_the_name_of_the_input(text: str) -> None:
    with pytest.raises(UsageError, match=r"leaves 'x' empty, and nothing to measure; write sizes from 1 on"):
        read_shape(text)


def test_of_ranges_the_middle_the_least_and_the_most_are_tried() -> None:
    found = settings_of(program(), {"x": ((1, 64), (3, 3), (5, 5))})
    assert [s.shapes["x"] for s in found] == [(8, 3, 5), (1, 3, 5), (64, 3, 5)]
    assert [str(s) for s in found] == ["x:8,3,5 z:8,?,1", "x:1,3,5 z:1,?,1", "x:64,3,5 z:64,?,1"]
    assert [s.shapes["z"] for s in found] == [(n, None, 1) for n in (8, 1, 64)]
    assert settings_of(program(), {"x": ((1, 2), (3, 3), (5, 5))})[0].shapes["x"][0] in (1, 2)


def test_sizes_without_ranges_are_one_setting_and_none_leave_all_open() -> None:
    (one,) = settings_of(program(), {"x": ((4, 4), (3, 3), (5, 5)), "z": ((4, 4), (7, 7), (1, 1))})
    assert one.shapes == {"x": (4, 3, 5), "z": (4, 7, 1)}
    assert settings_of(program(), {}) == (Setting(),)


def test_inputs_are_drawn_at_the_sizes_of_a_setting() -> None:
    draw = settings_of(program(), {"x": ((4, 4), (3, 3), (5, 5))})[0].draw(Draw(scale=2.0, size=9))
    assert (draw.scale, draw.size, draw.shapes) == (2.0, 9, {"x": (4, 3, 5), "z": (4, None, 1)})
    assert Setting().draw(Draw(shapes={"x": (7,)}, sizes={"n": 5})) == Draw(shapes={"x": (7,)}, sizes={"n": 5})


def test_sizes_that_are_computed_from_others_follow_them() -> None:
    ends = [("x", TensorProto.FLOAT, ["s0"]), ("y", TensorProto.FLOAT, ["2*s0"])]
    nodes = [helper.make_node("Concat", ["x", "y"], ["z"], axis=0)]
    given = understand(load(model(nodes, ends, [("z", TensorProto.FLOAT, ["3*s0"])])))
    (one,) = settings_of(given, {"y": ((8, 8),), "x": ((4, 4),)})
    assert one.shapes == {"x": (4,), "y": (8,)}
    with pytest.raises(UsageError, match="size 0 of input 'y' is 8, not 6"):
        settings_of(given, {"y": ((6, 6),), "x": ((4, 4),)})
    with pytest.raises(UsageError, match=r"size 0 of input 'y' is \(\* 2 s0\); give s0 by another input"):
        settings_of(given, {"y": ((8, 8),)})


def test_an_input_is_given_its_sizes_once() -> None:
    with pytest.raises(UsageError, match="input 'x' is given twice"):
        read_shapes(["x:1", "x:2"])


@pytest.mark.parametrize("size", [0, (2, 1), (1, 2, 3), "a", None, 1.5])
def test_what_is_no_size_is_refused_by_name(size: object) -> None:
    with pytest.raises(UsageError, match="a size of 'x' is "):
        Options(shapes={"x": [size]})  # type: ignore[list-item]


def test_sizes_may_come_from_arrays() -> None:
    assert Options(shapes={"x": list(np.array([4, 5]))}).ranges() == {"x": ((4, 4), (5, 5))}


def test_sizes_at_which_the_model_does_not_run_are_refused_before_the_search(options: Options) -> None:
    ends = [("x", TensorProto.FLOAT, [1, 3, "H", 8]), ("y", TensorProto.FLOAT, [1, 2, "h", 2])]
    nodes = [helper.make_node("Conv", ["x", "k"], ["y"])]
    given = model(nodes, ends[:1], ends[1:], {"k": weight(2, 3, 7, 7)})
    with pytest.raises(UsageError, match="shape: the model does not run at x:1,3,2,8: onnxruntime cannot run"):
        superopt.optimize(given, replace(options, shapes={"x": [1, 3, (2, 64), 8]}))


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"w": ((1, 1),)}, "the model has no input 'w'; its inputs are x, z"),
        ({"x": ((1, 1), (3, 3))}, "input 'x' has 3 sizes, not 2"),
        ({"x": ((1, 1), (2, 8), (1, 1))}, "size 1 of input 'x' is 3, not 2\\.\\.8"),
        ({"x": ((1, 2), (3, 3), (1, 1)), "z": ((2, 2), (1, 1), (1, 1))}, "size 0 of input 'z' is 1\\.\\.2, not 2"),
    ],
)
def test_sizes_that_are_not_the_models_are_refused(asked: dict[str, tuple[tuple[int, int], ...]], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        settings_of(program(), asked)


def test_what_is_measured_at_several_sizes_is_reported_at_each(options: Options) -> None:
    given = normalized(batch="N", size=28)
    report = superopt.optimize(given, replace(options, time=20, shapes={"image": [(1, 4), 3, 28, 28]})).report
    assert report.outcome == "faster"
    assert [there.shapes for there in report.elsewhere] == ["image:1,3,28,28", "image:4,3,28,28"]
    assert report.measured is not None
    assert report.measured.shapes == "image:2,3,28,28"
    assert report.settings.shapes == {"image": "1..4,3,28,28"}
    assert all(there.speedup > 1 for there in report.elsewhere)


@pytest.mark.parametrize(
    ("ratio", "low", "high", "lost"),
    [(1.2, 1.1, 1.3, False), (1.0, 0.97, 1.03, False), (0.995, 0.99, 0.999, True), (0.95, 0.8, 1.1, True)],
)
def test_a_loss_at_any_size_is_one(ratio: float, low: float, high: float, lost: bool) -> None:
    one = Timed(1.0, 1.0, 1.0, 5, 10)
    assert loses(Paired(one, one, ratio, low, high, 5, 10, ())) is lost


def test_a_model_that_loses_at_one_size_comes_back(options: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("superopt.search.accepting.judge.loses", lambda paired: True)
    given = normalized(batch="N", size=28)
    report = superopt.optimize(given, replace(options, time=20, shapes={"image": [(1, 4), 3, 28, 28]})).report
    assert (report.outcome, report.reason) == ("original", "it is slower at image:1,3,28,28")


@pytest.mark.parametrize(
    ("shapes", "fits"), [({}, True), ({"x": (2, 3)}, True), ({"x": (None, 3)}, True), ({"x": (4, 3)}, False)]
)
def test_models_are_measured_on_the_users_own_sample_where_it_is_of_the_sizes(
    shapes: dict[str, tuple[int | None, ...]], fits: bool
) -> None:
    """How long a loop runs, and how much is found, is told by values."""
    own = {"x": np.zeros((2, 3), np.float32)}
    asked = SimpleNamespace(settings=(Setting(shapes=shapes),), inputs=[own, {}])
    assert (Trial.measured_on(asked, 0).given is own) == fits  # type: ignore[arg-type]
    assert not Trial.measured_on(SimpleNamespace(settings=(Setting(shapes=shapes),), inputs=[]), 0).given  # type: ignore[arg-type]


def test_what_is_given_is_not_drawn(tmp_path: Path) -> None:
    model = write(
        tmp_path / "a.onnx", "g (float[2] x, int64 n) => (float[2] y) { f = Cast<to=1>(n) y = Mul(x, f) }", {}
    )
    runtime = OnnxRuntime()
    session = runtime.session(model)
    found = runtime.feeds(session, 0, Draw(given={"n": np.array(6)}))
    assert found["n"] == 6
    assert (found["x"] == runtime.feeds(session, 0)["x"]).all()


def test_what_was_measured_on_one_sample_is_not_remembered_of_another() -> None:
    def told(*inputs: dict[str, np.ndarray]) -> str:
        return Trial.sample.fget(SimpleNamespace(inputs=inputs))  # type: ignore[attr-defined]

    x = np.zeros((2, 3), np.float32)
    others = [{"x": x}, {"x": x + 1}, {"x": x.T}, {"x": x.astype(np.float64)}, {"y": x}]
    assert told() == ""
    assert len({told(), *map(told, others)}) == 1 + len(others)
    assert told({"x": x.copy()}, {"x": x + 1}) == told({"x": x})
