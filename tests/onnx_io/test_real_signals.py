"""Inverse transforms of one side are read as products with waves, which are the real numbers that they give."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import superopt
from superopt.api import Options
from superopt.onnx_io import load, understand
from superopt.operators.fourier import LARGEST
from tests.models import assert_same, model, weight
from tests.onnx_io.networks import run
from tests.onnx_io.test_catalogue import read_back
from tests.onnx_io.test_understanding import opaque

LENGTHS = range(2, 14)


def inverse(
    shape: tuple[int | str, ...], axis: int | None = 1, length: int | None = None, opset: int = 20
) -> onnx.ModelProto:
    """An inverse transform of one side, whose axis is an input from opset 20 on."""
    constants, inputs, named = dict[str, np.ndarray](), ["x", "", ""], {"inverse": 1, "onesided": 1}
    if length is not None:
        inputs[1], constants["length"] = "length", np.array(length)
    if axis is not None and opset >= 20:
        inputs[2], constants["axis"] = "axis", np.array(axis)
    if axis is not None and opset < 20:
        named["axis"] = axis
    while not inputs[-1]:
        inputs.pop()
    node = helper.make_node("DFT", inputs, ["y"], **named)
    ends = [("x", TensorProto.FLOAT, shape)], [("y", TensorProto.FLOAT, None)]
    return model([node], *ends, constants, opset=opset, ir=9)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("axis", [0, 1, 2, -2])
def test_it_is_the_real_numbers_of_the_waves(length: int, axis: int) -> None:
    shape = [2, 3, 4, 2]
    shape[axis] = length // 2 + 1
    x = weight(*shape)
    wanted = np.fft.irfft(x[..., 0] + 1j * x[..., 1], length, axis if axis >= 0 else axis + 1)
    found = read_back(inverse(tuple(shape), axis, length), {"x": x})
    np.testing.assert_allclose(found[..., 0], wanted, atol=1e-5)


@pytest.mark.parametrize("opset", [17, 20])
@pytest.mark.parametrize(("shape", "axis"), [((2, 5, 2), None), ((4, 5, 2), 0), ((5, 2), 0)], ids=str)
def test_of_no_length_it_is_what_a_runtime_takes_it_for(shape: tuple[int, ...], axis: int | None, opset: int) -> None:
    made, feed = inverse(shape, axis, opset=opset), {"x": weight(*shape)}
    np.testing.assert_allclose(read_back(made, feed), run(made, feed)[0], atol=1e-5)


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (inverse((2, 5, 2), length=12), "12 numbers of 5 waves"),
        (inverse((2, "n", 2), length=8), "8 numbers of"),
        (inverse((1, int(LARGEST**0.5), 2)), "more than"),
    ],
    ids=["other lengths", "of an open number", "many waves"],
)
def test_others_stay_opaque(made: onnx.ModelProto, why: str) -> None:
    assert why in opaque(understand(load(made)))


def test_a_signal_of_its_spectrum_is_computed_faster_and_is_the_same(options: Options) -> None:
    nodes = [
        helper.make_node("Mul", ["x", "k"], ["f"]),
        helper.make_node("DFT", ["f", "length", "axis"], ["y"], inverse=1, onesided=1),
    ]
    ends = [("x", TensorProto.FLOAT, [64, 65, 2])], [("y", TensorProto.FLOAT, [64, 128, 1])]
    constants = {"k": weight(65, 2), "length": np.array(128), "axis": np.array(1)}
    given = model(nodes, *ends, constants, opset=20, ir=9)
    result = superopt.optimize(given, options)
    assert result.report.outcome == "faster"
    assert "DFT" not in {n.op_type for n in result.proto().graph.node}
    assert_same(result.proto(), given)


def short_time(shape: tuple[int | str, ...]) -> onnx.ModelProto:
    """Frames of four numbers of a signal, two apart."""
    node = helper.make_node("STFT", ["x", "step", "window"], ["y"], onesided=1)
    ends = [("x", TensorProto.FLOAT, shape)], [("y", TensorProto.FLOAT, (shape[0], "frames", 3, 2))]
    return model([node], *ends, {"step": np.array(2), "window": weight(4)}, opset=17)


def test_frames_of_signals_without_an_axis_for_parts_are_those_of_real_numbers() -> None:
    made, feed = short_time((2, 11)), {"x": weight(2, 11)}
    assert not understand(load(made)).summary.opaque
    np.testing.assert_allclose(read_back(made, feed), run(made, feed)[0], atol=1e-5)


def test_so_are_they_of_signals_of_any_length() -> None:
    assert not understand(load(short_time(("batch", "length")))).summary.opaque
