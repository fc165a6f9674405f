"""Convolutions of quantized images with strides are of blocks of their places."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from tests.onnx_io.otherwise.quantized.quantized_nodes import Held, model, pair
from tests.onnx_io.otherwise.reading import operators_of

RNG = np.random.default_rng(0)


def convolution(
    kernel: int = 3,
    pads: tuple[int, ...] = (1, 1, 1, 1),
    size: tuple[int, int] = (64, 64),
    channels: int = 3,
    of: int = 5,
    zero: int = 0,
    **said: Any,
) -> onnx.ModelProto:
    """A convolution of an image of bytes by weights of one scale for each channel."""
    zeros = np.full(of, zero, np.int8)
    held: Held = {"w": RNG.integers(-127, 128, (of, channels, kernel, kernel)).astype(np.int8), "z": zeros}
    held |= {"s": RNG.random(of).astype(np.float32), "b": RNG.integers(-9, 9, of).astype(np.int32)}
    held |= {"sb": held["s"], "zb": np.zeros(of, np.int32)}
    said = {"strides": [2, 2], "pads": pads} | said
    places = [(d + pads[i] + pads[i + 2] - kernel) // said["strides"][0] + 1 for i, d in enumerate(size)]
    nodes = [
        *pair("x", "a", held, 1.0, np.uint8(100)),
        helper.make_node("DequantizeLinear", ["w", "s", "z"], ["weights"], axis=0),
        helper.make_node("DequantizeLinear", ["b", "sb", "zb"], ["bias"], axis=0),
        helper.make_node("Conv", ["a", "weights", "bias"], ["c"], **said),
        *pair("c", "d", held, 60.0, np.uint8(128)),
        helper.make_node("Relu", ["d"], ["y"]),
    ]
    return model(nodes, held, (1, channels, *size), (1, of, *places))


def fed(size: tuple[int, ...] = (1, 3, 64, 64)) -> dict[str, np.ndarray]:
    return {"x": RNG.integers(-90, 90, size).astype(np.float32)}


@pytest.mark.parametrize(
    "source",
    [
        convolution(),
        convolution(kernel=7, pads=(3, 3, 3, 3)),
        convolution(kernel=6, pads=(2, 2, 2, 2)),
        convolution(pads=(0, 0, 1, 1)),
        convolution(kernel=5, pads=(2, 1, 2, 1)),
        convolution(kernel=7, pads=(2, 2, 2, 2), size=(64, 96), strides=[4, 4]),
        convolution(zero=7),
    ],
    ids=["3 by 3", "7 by 7", "6 by 6", "pads behind", "other pads", "a stride of 4", "zero points of weights"],
)
def test_an_image_is_convolved_by_blocks_and_all_is_the_same(source: onnx.ModelProto) -> None:
    size = tuple(d.dim_value for d in source.graph.input[0].type.tensor_type.shape.dim)
    assert operators_of(source, fed(size)).count("SpaceToDepth") == 1


@pytest.mark.parametrize(
    "source",
    [
        convolution(size=(63, 64)),
        convolution(size=(16, 16)),
        convolution(channels=8),
        convolution(kernel=2, pads=(0, 0, 0, 0)),
        convolution(strides=[1, 1]),
    ],
    ids=["an odd size", "few places", "many channels", "blocks already", "no stride"],
)
def test_others_stay(source: onnx.ModelProto) -> None:
    size = tuple(d.dim_value for d in source.graph.input[0].type.tensor_type.shape.dim)
    assert "SpaceToDepth" not in operators_of(source, fed(size))


def test_weights_with_scales_of_their_own_in_blocks_stay() -> None:
    source = convolution(of=8)
    by_block = {"s": np.full((4, 3, 3, 3), 0.5, np.float32)}
    for held in source.graph.initializer:
        if held.name in by_block:
            held.CopyFrom(numpy_helper.from_array(by_block[held.name], held.name))
    weights, bias = (node for node in source.graph.node if node.output[0] in ("weights", "bias"))
    del weights.input[2]
    weights.attribute.append(helper.make_attribute("block_size", 2))
    bias.input[1] = "sb"
    source.opset_import[0].version = 21
    assert "SpaceToDepth" not in operators_of(source, fed())


def test_the_form_of_operators_on_integers_is_convolved_so() -> None:
    held: Held = {"w": RNG.integers(-64, 65, (5, 3, 3, 3)).astype(np.int8), "s": np.float32(0.5), "z": np.int8(0)}
    held |= {"sx": np.float32(1), "zx": np.uint8(90), "sy": np.float32(50), "zy": np.uint8(128)}
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "sx", "zx"], ["q"]),
        helper.make_node(
            "QLinearConv", ["q", "sx", "zx", "w", "s", "z", "sy", "zy"], ["c"], strides=[2, 2], pads=[1] * 4
        ),
        helper.make_node("DequantizeLinear", ["c", "sy", "zy"], ["y"]),
    ]
    source = model(nodes, held, (1, 3, 64, 64), (1, 5, 32, 32))
    assert operators_of(source, fed(), rounds=False) == [
        "QuantizeLinear",
        "SpaceToDepth",
        "QLinearConv",
        "DequantizeLinear",
    ]
