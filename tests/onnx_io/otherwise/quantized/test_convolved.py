"""Convolutions of integers, whose results are cast, are of 32-bit floating-point numbers."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.onnx_io.otherwise.quantized.quantized_nodes import Held, model
from tests.onnx_io.otherwise.reading import gain, operators_of

RNG = np.random.default_rng(0)


def convolution(
    size: tuple[int, ...] = (1, 4, 6, 6), zero: object = None, to: int = TensorProto.FLOAT, moved: bool = True
) -> onnx.ModelProto:
    """A convolution of 3 by 3 of what is quantized while the model runs."""
    channels = size[1]
    held: Held = {"w": RNG.integers(-127, 128, (channels, channels, 3, 3)).astype(np.int8), "s": np.float32(0.01)}
    if zero is not None:
        held["z"] = np.asarray(zero)
    more = ["zero"] if moved else []
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "scale", "zero"]),
        helper.make_node("ConvInteger", ["q", "w", *more, *held.keys() & {"z"}], ["c"], pads=[1] * 4),
        helper.make_node("Cast", ["c"], ["f"], to=to),
        helper.make_node("Cast", ["f"], ["g"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["scale", "s"], ["both"]),
        helper.make_node("Mul", ["g", "both"], ["y"]),
    ]
    return model(nodes, held, size, size)


def fed(size: tuple[int, ...] = (1, 4, 6, 6)) -> dict[str, np.ndarray]:
    return {"x": RNG.standard_normal(size).astype(np.float32)}


@pytest.mark.parametrize(
    "source",
    [convolution(), convolution(zero=np.int8(3)), convolution(moved=False)],
    ids=["as quantizers write it", "with a zero point of weights", "without one of values"],
)
def test_integers_are_convolved_as_numbers_and_all_is_the_same(source: onnx.ModelProto) -> None:
    found = operators_of(source, fed(), rounds=False)
    assert found.count("Conv") == 1
    assert "ConvInteger" not in found


def test_what_is_cast_to_other_numbers_is_convolved_as_integers() -> None:
    assert "ConvInteger" in operators_of(convolution(to=TensorProto.DOUBLE), fed())


def test_convolutions_of_integers_are_faster_so() -> None:
    size = (1, 32, 24, 24)
    assert gain(convolution(size), fed(size)) > 1.5
