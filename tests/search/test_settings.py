"""Sizes that inputs are said to have: read, matched with the model's own, and tried."""

from __future__ import annotations

from dataclasses import replace

import pytest
from onnx import TensorProto, helper

import superopt
from superopt.api import Options
from superopt.cost.runtime import Draw
from superopt.errors import UsageError
from superopt.onnx_io import Program, load, understand
from superopt.search.paired import Latency, Paired, loses
from superopt.search.settings import Setting, read_shape, settings_of
from tests.models import model, normalized


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


@pytest.mark.parametrize(
    "text", ["", "x", "x:", ":1", "x:0", "x:-1", "x:2..1", "x:1...2", "x:n", "x:1,,2", "x:9999999999"]
)
def test_what_is_no_shape_is_refused_by_name(text: str) -> None:
    with pytest.raises(UsageError, match=r"cannot be read; write an input and its sizes, as in x:1\.\.8,128"):
        read_shape(text)


def test_of_ranges_the_middle_the_least_and_the_most_are_tried() -> None:
    found = settings_of(program(), {"x": ((1, 64), (3, 3), (5, 5))})
    assert [s.shapes["x"] for s in found] == [(8, 3, 5), (1, 3, 5), (64, 3, 5)]
    assert [str(s) for s in found] == ["x:8,3,5", "x:1,3,5", "x:64,3,5"]
    assert ["z" in s.shapes for s in found] == [False] * 3
    assert settings_of(program(), {"x": ((1, 2), (3, 3), (5, 5))})[0].shapes["x"][0] in (1, 2)


def test_sizes_without_ranges_are_one_setting_and_none_leave_all_open() -> None:
    (one,) = settings_of(program(), {"x": ((4, 4), (3, 3), (5, 5)), "z": ((4, 4), (7, 7), (1, 1))})
    assert one.shapes == {"x": (4, 3, 5), "z": (4, 7, 1)}
    assert settings_of(program(), {}) == (Setting(),)


def test_inputs_are_drawn_at_the_sizes_of_a_setting() -> None:
    draw = settings_of(program(), {"x": ((4, 4), (3, 3), (5, 5))})[0].draw(Draw(scale=2.0, size=9))
    assert (draw.scale, draw.size, draw.shapes["x"], draw.sizes["N"]) == (2.0, 9, (4, 3, 5), 4)


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"w": ((1, 1),)}, "the model has no input 'w'; its inputs are x, z"),
        ({"x": ((1, 1), (3, 3))}, "input 'x' has 3 sizes, not 2"),
        ({"x": ((1, 1), (4, 4), (1, 1))}, "size 1 of input 'x' is 3, not 4"),
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
    assert all(there.speedup > 1 for there in report.elsewhere)


@pytest.mark.parametrize(
    ("ratio", "low", "high", "lost"),
    [(1.2, 1.1, 1.3, False), (1.0, 0.97, 1.03, False), (0.995, 0.99, 0.999, True), (0.95, 0.8, 1.1, True)],
)
def test_a_loss_at_any_size_is_one(ratio: float, low: float, high: float, lost: bool) -> None:
    one = Latency(1.0, 1.0, 1.0, 5, 10)
    assert loses(Paired(one, one, ratio, low, high, 5, 10, ())) is lost


def test_a_model_that_loses_at_one_size_comes_back(options: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("superopt.search.optimize.loses", lambda paired: True)
    given = normalized(batch="N", size=28)
    report = superopt.optimize(given, replace(options, time=20, shapes={"image": [(1, 4), 3, 28, 28]})).report
    assert (report.outcome, report.reason) == ("original", "it is no gain at image:1,3,28,28")
