"""Sizes that symbolic ones are taken to have where nobody says, and those that candidates are compared at."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from onnx import TensorProto, helper

import superopt
from superopt.api import Options
from superopt.onnx_io import Program, load, understand
from superopt.search.likely import compared_at, likely
from superopt.search.settings import Setting, settings_of
from tests.models import model, weight

Dims = Sequence[int | str | None]


def program(*inputs: Dims) -> Program:
    """A model of inputs of these sizes, none of which is looked at."""
    ends = [(f"x{i}", TensorProto.FLOAT, dims) for i, dims in enumerate(inputs)]
    nodes = [helper.make_node("Relu", [name], [f"y{i}"]) for i, (name, *_) in enumerate(ends)]
    return understand(load(model(nodes, ends, [(f"y{i}", TensorProto.FLOAT, e[2]) for i, e in enumerate(ends)])))


def test_an_input_says_by_its_name_what_numbered_sizes_are() -> None:
    """As torch names them where nobody else does; four heads are no colours."""
    ends = [
        ("input_ids", TensorProto.INT64, ["s10", "s21"]),
        ("attention_mask", TensorProto.INT64, ["s10", "s12"]),
        ("past_k_0", TensorProto.FLOAT, ["s10", 4, "s29", 32]),
    ]
    nodes = [helper.make_node("Identity", [name], [f"{name}_out"]) for name, *_ in ends]
    given = understand(load(model(nodes, ends, [(f"{name}_out", *rest) for name, *rest in ends])))
    (setting,) = likely(given, (Setting(),), the_first)
    assert setting.sizes == {"s10": 1, "s21": 1, "s12": 128, "s29": 127}


def test_stacked_keys_and_values_are_of_a_past_where_sizes_are_numbered() -> None:
    """As onnxruntime's tools fuse those of GPT-2."""
    ends = [("input_ids", TensorProto.INT64, ["s0", "s1"]), ("past_0", TensorProto.FLOAT, [2, "s0", 4, "s2", 32])]
    nodes = [helper.make_node("Identity", [name], [f"{name}_out"]) for name, *_ in ends]
    given = understand(load(model(nodes, ends, [(f"{name}_out", *rest) for name, *rest in ends])))
    (setting,) = likely(given, (Setting(),), the_first)
    assert setting.sizes == {"s0": 1, "s1": 1, "s2": 127}


def the_first(settings: Sequence[Setting]) -> int:
    return 0


@pytest.mark.parametrize(
    ("inputs", "sizes"),
    [
        ([["N", 3, "H", "W"]], [(1, 3, 224, 224)]),
        ([["N", "H", "W", 3]], [(1, 224, 224, 3)]),
        ([[None, None, None, None]], [(1, 3, 224, 224)]),
        ([["N", 3, 48, "W"]], [(1, 3, 48, 224)]),
        ([["batch", "sequence"], ["batch", "sequence"]], [(1, 128), (1, 128)]),
        ([["sequence", "batch", 64]], [(128, 1, 64)]),
        ([["N", 80, "frames"]], [(1, 80, 128)]),
        ([["n"]], [(128,)]),
        ([["N", 512], ["N"]], [None, None]),
        ([[4, 3, 8, 8]], [None]),
        ([[None, None], [2, None, 128]], [(1, 128), (2, 1, 128)]),
        (
            [["batch", "sequence_length"], ["batch", "past_length + sequence_length"], ["batch", 4, "past_length", 8]],
            [(1, 1), (1, 128), (1, 4, 127, 8)],
        ),
        (
            [["b", "decoder_sequence"], ["b", 4, "past_sequence", 8], ["b", "encoder_sequence", 16]],
            [(1, 1), (1, 4, 127, 8), (1, 128, 16)],
        ),
        ([["N", 1, "H", "W"]], [(1, 1, 224, 224)]),
        ([[None, None], [None, 1, None, None]], [(1, 128), (1, 1, 128, 128)]),
        ([["s0", "s1"], [2, "s0", 4, "past_seq", 8]], [(1, 1), (2, 1, 4, 127, 8)]),
        ([["s0", "s1", 8], ["s1", "s2"]], [(1, 128, 8), (128, 128)]),
        ([["N", 45, 80], [64, "N", 128], [1, "N", 64, 192]], [None, None, None]),
        ([["s0", "s1", 8], ["s1", "s0"]], [(1, 128, 8), (128, 1)]),
        ([["b", "seq"], ["b", "total_seq"], ["b", 4, "past_seq", 8]], [(1, 1), (1, 128), (1, 4, 127, 8)]),
    ],
    ids=str,
)
def test_what_an_axis_is_shows_in_its_place_and_its_name(
    inputs: Sequence[Dims], sizes: Sequence[tuple[int, ...] | None]
) -> None:
    (found,) = likely(program(*inputs), [Setting()], the_first)
    assert [found.shapes.get(f"x{i}") for i in range(len(inputs))] == sizes
    assert found.likely == (None not in sizes)


def test_sizes_are_tried_until_the_model_runs_and_given_ones_are_kept() -> None:
    given, tried = program(["N", 3, "H", "W"]), list[Setting]()

    def the_last(settings: Sequence[Setting]) -> int:
        tried.extend(settings)
        return len(settings) - 1

    assert [s.shapes["x0"] for s in likely(given, [Setting()], the_last)] == [(1, 3, 64, 64)]
    assert [s.shapes["x0"][2] for s in tried] == [224, 320, 640, 64]
    asked = settings_of(program(["N", 3, "H", "W"], ["N", "H"]), {"x1": ((2, 8), (50, 50))})
    found = likely(program(["N", 3, "H", "W"], ["N", "H"]), asked, the_first)
    assert [s.shapes["x0"] for s in found] == [(4, 3, 50, 224), (2, 3, 50, 224), (8, 3, 50, 224)]
    tried.clear()
    likely(program(["N", 3, "H", "W"], ["N", "tokens"]), [Setting()], the_last)
    assert {s.shapes["x0"][2] for s in tried} >= {224, 320, 640}
    assert {s.shapes["x1"][1] for s in tried} >= {128, 512, 16000}


def test_where_no_size_runs_sizes_stay_open() -> None:
    assert likely(program(["N", 3, "H", "W"]), [Setting()], lambda settings: None) == (Setting(),)


def test_of_several_batches_more_than_one_each_is_tried_where_one_is_too_few() -> None:
    given, tried = program(["images", 512], ["texts", 384]), list[Setting]()

    def the_second(settings: Sequence[Setting]) -> int:
        tried.extend(settings)
        return 1

    (found,) = likely(given, [Setting()], the_second)
    assert (found.likely, found.shapes) == (True, {"x0": (1, 512), "x1": (128, 384)})
    assert [s.shapes["x0"][0] for s in tried] == [1, 1, 128]
    assert likely(given, [Setting()], the_first) == (Setting(),), "of one each they are as good as open"


def test_no_huge_input_is_made_without_being_asked_for() -> None:
    (found,) = likely(program(["N", 4096, "a", "b", "c"]), [Setting()], the_first)
    assert not found.likely


def test_a_candidate_is_compared_at_other_sizes_than_it_is_measured_at() -> None:
    given = program(["N", 3, "H", "W"])
    found = likely(given, [Setting()], the_first)
    shapes = [s.shapes["x0"] for s in compared_at(given, found, [Setting()])]
    assert shapes == [(1, 3, 224, 224), (2, 3, 64, 96), (1, 3, 224, 224), (3, 3, 3, 3), (1, 3, 224, 224)]
    asked = settings_of(given, {"x0": ((1, 1), (3, 3), (8, 8), (8, 8))})
    assert compared_at(given, asked, asked) == asked
    of_two = program(["N", 3, "H", "W"], ["N", "H"])
    asked = settings_of(of_two, {"x1": ((4, 4), (50, 50))})
    shapes = [s.shapes["x0"] for s in compared_at(of_two, likely(of_two, asked, the_first), asked)]
    assert shapes[1:4:2] == [(4, 3, 50, 64), (4, 3, 50, 3)]


def test_an_image_that_a_window_does_not_fit_into_is_compared_with_nothing() -> None:
    """onnxruntime gives one place where there is none, as it rounds toward zero."""
    ends = [("x", TensorProto.FLOAT, ["N", 3, "H", "W"]), ("y", TensorProto.FLOAT, ["N", 3, "h", "w"])]
    pool = helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[4, 4], strides=[4, 4])
    given = understand(load(model([pool], ends[:1], ends[1:])))
    found = likely(given, [Setting()], the_first)
    assert {s.shapes["x"][2] for s in compared_at(given, found, [Setting()])} == {224, 64}


def test_a_network_that_takes_multiples_of_64_is_searched_at_a_size_that_it_takes(options: Options) -> None:
    """Halved and doubled again, an image of another size cannot be added to itself; at the size of 1 nothing runs."""
    nodes = [
        helper.make_node("MaxPool", ["x"], ["small"], kernel_shape=[64, 64], strides=[64, 64]),
        helper.make_node("ConvTranspose", ["small", "k"], ["large"], strides=[64, 64]),
        helper.make_node("Add", ["large", "x"], ["z"]),
        helper.make_node("Relu", ["z"], ["more"]),
        helper.make_node("Relu", ["more"], ["y"]),
    ]
    ends = [("x", TensorProto.FLOAT, ["N", 3, "H", "W"]), ("y", TensorProto.FLOAT, ["N", 3, "H", "W"])]
    given = model(nodes, ends[:1], ends[1:], {"k": weight(3, 3, 64, 64)})
    report = superopt.optimize(given, options).report
    assert report.settings.assumed == {"x": "1,3,320,320"}
    assert report.measured is not None
    assert "runs on none" not in report.reason
