"""Fourier transforms as products with waves."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper

import superopt
from superopt.api import Options
from superopt.arithmetic.floats import FLOAT
from superopt.evaluate import evaluate
from superopt.operators.fourier import LARGEST, Dft, Stft
from superopt.operators.waves import Waves
from superopt.term import Term, make, variable
from tests.models import assert_same, model, weight

LENGTHS = range(1, 14)


def numbers(*shape: int) -> NDArray[np.float64]:
    return np.random.default_rng(len(shape)).standard_normal(shape)


def complex_of(x: NDArray[np.float64]) -> NDArray[np.complex128]:
    return np.asarray(x[..., 0] + 1j * (x[..., 1] if x.shape[-1] == 2 else 0.0))


def parts_of(x: NDArray[np.complex128]) -> NDArray[np.float64]:
    return np.stack([x.real, x.imag], axis=-1)


def value(term: Term, x: NDArray[np.float64]) -> NDArray[np.float64]:
    (leaf,) = [t for t in term.inputs if t.is_variable][:1]
    return evaluate(term, FLOAT, {leaf: x})


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize(("parts", "inverse", "onesided"), [(1, 0, 0), (1, 0, 1), (2, 0, 0), (2, 1, 0), (1, 1, 0)])
def test_a_product_with_waves_is_the_transform(length: int, axis: int, parts: int, inverse: int, onesided: int) -> None:
    shape = [2, 3, 4]
    shape[axis] = length
    x = numbers(*shape, parts)
    transform = np.fft.ifft if inverse else np.fft.fft
    wanted = parts_of(transform(complex_of(x), axis=axis))
    if onesided:
        wanted = wanted.take(range(length // 2 + 1), axis)
    found = value(Dft(axis, inverse, onesided)(variable("x", x.shape)), x)
    np.testing.assert_allclose(found, wanted, atol=1e-12)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("step", [1, 2, 5])
@pytest.mark.parametrize("onesided", [0, 1])
def test_a_convolution_with_waves_is_the_transform_of_frames(length: int, step: int, onesided: int) -> None:
    x, window = numbers(2, 17, 1), numbers(length)
    frames = np.stack([x[:, i : i + length, 0] * window for i in range(0, 18 - length, step)], axis=1)
    wanted = parts_of(np.fft.fft(frames))
    wanted = wanted[:, :, : length // 2 + 1] if onesided else wanted
    signal, weighed = variable("x", x.shape), variable("w", window.shape)
    found = evaluate(Stft(step, onesided)(signal, weighed), FLOAT, {signal: x, weighed: window})
    np.testing.assert_allclose(found, wanted, atol=1e-12)


@pytest.mark.parametrize("length", [4, 8, 12])
def test_waves_are_exact_at_each_quarter(length: int) -> None:
    found = evaluate(make(Waves(length, length)), FLOAT, {})
    quarters = found[:, :: length // 2]
    assert set(np.unique(np.abs(quarters))) <= {0.0, 1.0}


def test_more_waves_than_may_be_kept_are_left_to_the_runtime() -> None:
    x = variable("x", (1, int(LARGEST**0.5), 2))
    assert Dft(1).definition(x) is None


@pytest.mark.parametrize(
    "op", [Dft(2), Dft(1, 1, 1), Dft(1, 0, 1)], ids=["of the parts", "one side of an inverse", "one side of parts"]
)
def test_what_is_not_declared_has_no_shape(op: Dft) -> None:
    with pytest.raises(superopt.SuperoptError, match="dft"):
        op(variable("x", (2, 6, 2)))


@pytest.mark.parametrize("opset", [17, 20])
def test_spectra_of_rows_are_computed_faster_and_are_the_same(opset: int, options: Options) -> None:
    nodes = [
        helper.make_node("DFT", ["x"] if opset < 20 else ["x", "", "axis"], ["f"], onesided=1),
        helper.make_node("Mul", ["f", "f"], ["y"]),
    ]
    ends = [("x", TensorProto.FLOAT, [64, 128, 1]), ("y", TensorProto.FLOAT, [64, 65, 2])]
    constants = {} if opset < 20 else {"axis": np.array(1)}
    given = model(nodes, ends[:1], ends[1:], constants, opset=opset, ir=9)
    result = superopt.optimize(given, options)
    assert result.report.outcome == "faster"
    assert "DFT" not in {n.op_type for n in result.proto().graph.node}
    assert_same(result.proto(), given)


@pytest.mark.parametrize("said", [{"onesided": 1}, {}], ids=["of one side", "of one side by default"])
def test_spectra_of_frames_are_computed_faster_and_are_the_same(said: dict[str, int], options: Options) -> None:
    """As the front of a recognizer of speech: frames of 25 ms, each 10."""
    nodes = [
        helper.make_node("STFT", ["x", "step", "window"], ["f"], **said),
        helper.make_node("Mul", ["f", "f"], ["y"]),
    ]
    ends = [("x", TensorProto.FLOAT, [1, 4000, 1]), ("y", TensorProto.FLOAT, [1, 23, 201, 2])]
    given = model(nodes, ends[:1], ends[1:], {"step": np.array(160), "window": weight(400)})
    result = superopt.optimize(given, options)
    assert result.report.outcome == "faster"
    assert "STFT" not in {n.op_type for n in result.proto().graph.node}
    assert_same(result.proto(), given)
