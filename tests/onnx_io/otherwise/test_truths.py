"""Truth values are counted in floating-point numbers where that is exact, and give the same integers."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from tests.onnx_io.models import as_read
from tests.onnx_io.networks import run

SIZES = (64, 32, 16)
CODES = {"int32": 6, "int64": 7}


def counting(
    axes: tuple[int, ...], opset: int, keeps: int = 1, to: str = "int64", kind: str = "ReduceSum", given: str = ""
) -> str:
    """A model that counts truth values along axes; all of them where none are told."""
    rank = 3 if keeps else 3 - (len(axes) or 3)
    shape = ", ".join(f"d{i}" for i in range(rank))
    listed = ", ".join(map(str, axes))
    is_input = opset >= (13 if kind == "ReduceSum" else 18)
    held = f"<int64[{len(axes)}] axes = {{{listed}}}> " if is_input and axes else ""
    told = f"axes = [{listed}], " if axes and not is_input else ""
    many = f"{to}[{shape}]" if shape else to
    return (
        f"g (bool[{given or '64, 32, 16'}] b) => ({many} y) {held}{{ c = Cast<to = {CODES[to]}>(b) "
        f"y = {kind}<{told}keepdims = {keeps}>(c{', axes' if held else ''}) }}"
    )


def casts(made: onnx.ModelProto) -> list[int]:
    """To what types casts of a model cast."""
    return [node.attribute[0].i for node in made.graph.node if node.op_type == "Cast"]


def agrees(source: onnx.ModelProto, made: onnx.ModelProto, truth: np.ndarray) -> None:
    (expected,), (found,) = run(source, {"b": truth}), run(made, {"b": truth})
    assert expected.dtype == found.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("to", CODES)
@pytest.mark.parametrize("keeps", [0, 1])
@pytest.mark.parametrize("axes", [(), (0,), (-1,), (1, 2), (0, -1), (0, 1, 2)], ids=str)
@pytest.mark.parametrize("opset", [11, 13, 18])
def test_truth_values_are_counted_exactly(opset: int, axes: tuple[int, ...], keeps: int, to: str) -> None:
    source, made = as_read(counting(axes, opset, keeps, to), opset)
    assert casts(made) == [1, CODES[to]]
    for share in (0.0, 0.4, 1.0):
        agrees(source, made, np.random.default_rng(0).random(SIZES) < share)


@pytest.mark.parametrize("kind", ["ReduceMax", "ReduceMin"])
@pytest.mark.parametrize("opset", [13, 18])
def test_whether_any_is_true_or_all_are_is_told_too(opset: int, kind: str) -> None:
    source, made = as_read(counting((1,), opset, kind=kind), opset)
    assert casts(made) == [1, 7]
    for share in (0.0, 0.03, 0.97, 1.0):
        agrees(source, made, np.random.default_rng(0).random(SIZES) < share)


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_of_any_number_of_rows(rows: int) -> None:
    source, made = as_read(counting((1, 2), 17, given="rows, 256, 64"), 17)
    assert casts(made) == [1, 7]
    agrees(source, made, np.random.default_rng(0).random((rows, 256, 64)) < 0.5)


STAYING = {
    "nobody knows how many": counting((0,), 17, given="rows, 256, 64"),
    "too many": counting((0, 1), 17, given="4096, 4096, 2"),
    "few": counting((1,), 17, given="2, 3, 4"),
    "integers": counting((1,), 17).replace("bool[", "int32["),
    "the largest of 32 bits, which is as fast": counting((1,), 17, to="int32", kind="ReduceMax"),
}


@pytest.mark.parametrize("text", STAYING.values(), ids=STAYING)
def test_integers_stay(text: str) -> None:
    _, made = as_read(text, 17)
    assert 1 not in casts(made)


def test_axes_that_are_given_when_the_model_runs_stay() -> None:
    text = (
        "g (bool[64, 32, 16] b, int64[n] axes) => (int64[a, b, c] y) "
        "{ c = Cast<to = 7>(b) y = ReduceSum<keepdims = 1>(c, axes) }"
    )
    assert 1 not in casts(as_read(text.replace("[a, b, c]", "[d0, d1, d2]"), 17)[1])


def test_truth_values_that_nothing_is_counted_along_stay() -> None:
    text = (
        "g (bool[64, 32, 16] b) => (int64[64, 32, 16] y) <int64[0] axes = {}> "
        "{ c = Cast<to = 7>(b) y = ReduceSum<noop_with_empty_axes = 1>(c, axes) }"
    )
    assert 1 not in casts(as_read(text, 17)[1])
