"""Depthwise convolutions of bytes have as many channels as processors compute at once."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import helper

from superopt.onnx_io import load, understand
from tests.onnx_io.otherwise.quantized.quantized_nodes import Held, model, pair
from tests.onnx_io.otherwise.reading import operators_of

RNG = np.random.default_rng(0)
FED = {"x": RNG.standard_normal((1, 8, 24, 24)).astype(np.float32)}


class Layers:
    """Convolutions of bytes, one behind the other: of scales that are powers of two, so that no sum is rounded."""

    def __init__(self) -> None:
        self.held: Held = {}
        self.nodes = pair("x", "v", self.held, 2**-5, np.uint8(128))
        self.value, self.count = "v", 0

    def quantized(self, value: str, scale: float = 2**-4, zero: int = 128) -> str:
        self.count += 1
        self.nodes += pair(value, f"v{self.count}", self.held, scale, np.uint8(zero))
        return f"v{self.count}"

    def convolved(self, value: str, size: tuple[int, ...], group: int = 1, bias: bool = True) -> str:
        n = f"w{len(self.held)}"
        self.held |= {n: RNG.integers(-20, 20, size).astype(np.int8), f"{n}s": np.full(size[0], 2**-7, np.float32)}
        self.held |= {f"{n}z": np.zeros(size[0], np.int8), f"{n}b": RNG.integers(-99, 99, size[0]).astype(np.int32)}
        self.held |= {f"{n}bs": np.full(size[0], 2**-12, np.float32), f"{n}bz": np.zeros(size[0], np.int32)}
        self.nodes += [
            helper.make_node("DequantizeLinear", [n, f"{n}s", f"{n}z"], [f"{n}w"], axis=0),
            helper.make_node("DequantizeLinear", [f"{n}b", f"{n}bs", f"{n}bz"], [f"{n}a"], axis=0),
        ]
        read = [value, f"{n}w", *[f"{n}a"] * bias]
        self.nodes += [helper.make_node("Conv", read, [f"{n}y"], group=group, pads=[size[2] // 2] * 4)]
        return self.quantized(f"{n}y")

    def each(self, kind: str, values: list[str], zero: int = 128) -> str:
        self.count += 1
        self.nodes += [helper.make_node(kind, values, [f"e{self.count}"])]
        return self.quantized(f"e{self.count}", zero=zero)

    def model(self, value: str, channels: int = 8) -> onnx.ModelProto:
        nodes = [*self.nodes, helper.make_node("Relu", [value], ["y"])]
        return model(nodes, self.held, (1, 8, 24, 24), (1, channels, 24, 24))


def inverted(channels: int = 56, excited: bool = False, shown: bool = False, bias: bool = True) -> onnx.ModelProto:
    """An inverted residual: more channels, each convolved by itself, and weighed if it is `excited`, and less again."""
    layers = Layers()
    wide = layers.each("Relu", [layers.convolved("v", (channels, 8, 1, 1), bias=bias)], 0)
    deep = layers.convolved(wide, (channels, 1, 3, 3), channels, bias)
    if excited:
        mean = layers.each("GlobalAveragePool", [deep])
        few = layers.convolved(mean, (8, channels, 1, 1))
        share = layers.each("HardSigmoid", [layers.convolved(few, (channels, 8, 1, 1))], 0)
        deep = layers.each("Mul", [deep, share])
    if shown:
        return layers.model(deep, channels)
    less = layers.convolved(deep, (8, channels, 1, 1))
    return layers.model(layers.each("Add", [less, "v"]))


def groups(source: onnx.ModelProto) -> set[int]:
    """Into how many groups channels are parted, in a model as it is read."""
    made = ir.to_proto(understand(load(source)).model)
    said = [node for node in made.graph.node if node.op_type == "Conv"]
    return {a.i for node in said for a in node.attribute if a.name == "group"} - {1}


@pytest.mark.parametrize("excited", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_channels_are_added_and_all_is_the_same(excited: bool, bias: bool) -> None:
    source = inverted(56, excited, bias=bias)
    assert groups(source) == {64}
    operators_of(source, FED, rounds=False)


@pytest.mark.parametrize(
    ("source", "channels"),
    [(inverted(32), 32), (inverted(20), 20), (inverted(shown=True), 56)],
    ids=["enough", "too few for as many more", "they come out"],
)
def test_others_stay(source: onnx.ModelProto, channels: int) -> None:
    assert groups(source) == {channels}
