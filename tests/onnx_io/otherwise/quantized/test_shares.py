"""Softmaxes of quantized rows are computed in 32-bit numbers."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper

from superopt.onnx_io import load, understand
from superopt.onnx_io.said import held as said
from tests.onnx_io.otherwise.quantized.quantized_nodes import Held, model, pair
from tests.onnx_io.otherwise.reading import gain, operators_of

RNG = np.random.default_rng(0)


def softmax(shape: tuple[int, ...], scale: float = 0.05, axis: int = -1, opset: int = 17) -> onnx.ModelProto:
    """A softmax between values of bytes."""
    held: Held = {}
    nodes = pair("x", "a", held, scale, np.uint8(100))
    nodes += [helper.make_node("Softmax", ["a"], ["s"], axis=axis), *pair("s", "b", held, 1 / 256, np.uint8(0))]
    return model([*nodes, helper.make_node("Relu", ["b"], ["y"])], held, shape, shape, opset)


def fed(shape: tuple[int, ...]) -> dict[str, np.ndarray]:
    return {"x": RNG.standard_normal(shape).astype(np.float32) * 3}


def test_a_softmax_is_of_bytes_that_are_cast() -> None:
    found = operators_of(softmax((64, 64)), fed((64, 64)), rounds=False)
    assert found == ["QuantizeLinear", "Cast", "Sub", "Mul", "Softmax", "QuantizeLinear", "DequantizeLinear", "Relu"]


@pytest.mark.parametrize("opset", [17, 18])
def test_where_scores_may_be_far_apart_none_is_too_small_for_a_number(opset: int) -> None:
    given = {"x": np.where(RNG.random((64, 64)) < 0.5, -10000, RNG.standard_normal((64, 64))).astype(np.float32)}
    found = operators_of(softmax((64, 64), 40.0, opset=opset), given, rounds=False)
    assert [found.count(kind) for kind in ("ReduceMax", "Sub", "Max")] == [1, 2, 1]


@pytest.mark.parametrize(("shape", "axis"), [((64, 64), 0), ((1, 16, 4, 100), 1), ((2, 8, 300), -2)])
def test_along_another_axis_exponentials_are_divided_by_their_sum(shape: tuple[int, ...], axis: int) -> None:
    found = operators_of(softmax(shape, axis=axis), fed(shape), rounds=False)
    shares = ["QuantizeLinear", "Cast", "Sub", "Mul", "Exp", "ReduceSum", "Div"]
    assert found == [*shares, "QuantizeLinear", "DequantizeLinear", "Relu"]


@pytest.mark.parametrize("opset", [17, 18])
def test_along_another_axis_too_scores_may_be_far_apart(opset: int) -> None:
    given = {"x": np.where(RNG.random((64, 64)) < 0.5, -10000, RNG.standard_normal((64, 64))).astype(np.float32)}
    found = operators_of(softmax((64, 64), 40.0, axis=0, opset=opset), given, rounds=False)
    assert [found.count(kind) for kind in ("ReduceMax", "Sub", "Max", "Exp")] == [1, 2, 1, 1]


def test_before_opset_13_all_axes_behind_are_one() -> None:
    shape = (1, 16, 4, 100)
    found = operators_of(softmax(shape, axis=1, opset=12), fed(shape), rounds=False)
    assert "Exp" not in found


@pytest.mark.parametrize(("shape", "axis"), [((8, 64), -1), ((1024, 8), -1), ((8, 64), 0)])
def test_softmaxes_of_few_numbers_and_short_rows_stay(shape: tuple[int, int], axis: int) -> None:
    assert "Cast" not in operators_of(softmax(shape, axis=axis), fed(shape), rounds=False)


def test_softmaxes_of_numbers_that_would_be_infinite_by_themselves_stay() -> None:
    given = {"x": np.where(RNG.random((64, 64)) < 0.5, 3e38, -1e38).astype(np.float32)}
    assert "Cast" not in operators_of(softmax((64, 64), 2e36), given, rounds=False)


def test_softmaxes_of_quantized_rows_are_faster_so() -> None:
    shape = (512, 128)
    assert gain(softmax(shape), fed(shape)) > 1.5


def test_bytes_with_a_sign_become_such_without_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else what is cast could not, nor what is computed in front of it."""
    monkeypatch.setattr("superopt.onnx_io.otherwise.quantized.unsigned_values.all_are_exact", lambda _: True)
    held: Held = {}
    nodes = [*pair("x", "a", held, 0.05, np.int8(-28)), helper.make_node("Softmax", ["a"], ["s"], axis=-1)]
    nodes += [*pair("s", "b", held, 1 / 256, np.int8(-128)), helper.make_node("Relu", ["b"], ["y"])]
    source = model(nodes, held, (64, 64), (64, 64))
    found = operators_of(source, fed((64, 64)), rounds=False)
    assert found == ["QuantizeLinear", "Cast", "Sub", "Mul", "Softmax", "QuantizeLinear", "DequantizeLinear", "Relu"]
    read = [node for node in understand(load(source)).model.graph if node.op_type == "QuantizeLinear"]
    assert {str(data.dtype) for node in read if (data := said(node.inputs[2])) is not None} == {"UINT8"}


def test_softmaxes_along_another_axis_are_faster_so() -> None:
    shape = (1, 16, 4, 2100)
    assert gain(softmax(shape, axis=1), fed(shape)) > 3.0
