"""Networks of convolutions that shuffle channels, as ShuffleNet V2 does, with weights of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.onnx_io.networks import Array


@dataclass
class Network:
    """A network that grows by nodes, of images of so many places; `batch` is a number or a name."""

    places: int = 28
    batch: int | str = 1
    seed: int = 0
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    held: list[onnx.TensorProto] = field(default_factory=list)

    def node(self, op_type: str, inputs: Sequence[str], outputs: int = 1, **said: object) -> list[str]:
        """The results of a new node."""
        names = [f"{op_type.lower()}{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op_type, inputs, names, **said))
        return names

    def hold(self, data: Array) -> str:
        """A constant."""
        self.held.append(numpy_helper.from_array(data, f"w{len(self.held)}"))
        return self.held[-1].name

    def weights(self, *shape: int) -> str:
        """Random numbers whose products stay about as large."""
        rng = np.random.default_rng(self.seed + len(self.held))
        return self.hold((rng.standard_normal(shape) / max(np.prod(shape[1:]), 1) ** 0.5).astype(np.float32))

    def integers(self, *numbers: int) -> str:
        """A row of integers."""
        return self.hold(np.array(numbers, np.int64))

    def conv(self, x: str, before: int, after: int, size: int = 1, stride: int = 1, group: int = 1) -> str:
        """A convolution with a norm behind it."""
        weights = [self.weights(after, before // group, size, size), self.weights(after)]
        said = {"group": group, "strides": [stride] * 2, "pads": [size // 2] * 4}
        (y,) = self.node("Conv", [x, *weights], **said)
        spread = self.hold(np.linspace(0.5, 2.0, after, dtype=np.float32))
        return self.node("BatchNormalization", [y, *(self.weights(after) for _ in range(3)), spread])[0]

    def model(self, results: Sequence[str], channels: int, opset: int = 17) -> onnx.ModelProto:
        """The model, of an image of so many channels, whose results have any size."""
        sizes = [self.batch, channels, self.places, self.places]
        given = helper.make_tensor_value_info("x", TensorProto.FLOAT, sizes)
        made = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in results]
        graph = helper.make_graph(self.nodes, "g", [given], made, self.held)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
        model = onnx.shape_inference.infer_shapes(model, data_prop=True)
        onnx.checker.check_model(model, full_check=True)
        return model


def shuffle(net: Network, x: str, channels: int, places: int, how: str) -> str:
    """Channels of two groups by turns."""
    if how == "gathered":
        order = np.arange(channels).reshape(2, -1).T.reshape(-1)
        return net.node("Gather", [x, net.integers(*order)], axis=1)[0]
    if how == "asked":  # as exporters write a batch of any size
        (sizes,) = net.node("Shape", [x])
        (batch,) = net.node("Gather", [sizes, net.integers(0)])
        (apart,) = net.node("Concat", [batch, net.integers(2, channels // 2, places, places)], axis=0)
        (whole,) = net.node("Concat", [batch, net.integers(channels, places, places)], axis=0)
    else:
        apart, whole = net.integers(1, 2, channels // 2, places, places), net.integers(1, channels, places, places)
    (y,) = net.node("Reshape", [x, apart])
    (y,) = net.node("Transpose", [y], perm=[0, 2, 1, 3, 4])
    return net.node("Reshape", [y, whole])[0]


def halves(net: Network, x: str, channels: int, how: str) -> list[str]:
    """The first and the last of the channels."""
    half = channels // 2
    if how == "gathered":
        return [net.node("Gather", [x, net.integers(*range(i, i + half))], axis=1)[0] for i in (0, half)]
    if how == "sliced":
        ends = [[net.integers(i), net.integers(j), net.integers(1)] for i, j in ((0, half), (half, 2**62))]
        return [net.node("Slice", [x, *end])[0] for end in ends]
    return net.node("Split", [x, net.integers(half, half)], 2, axis=1)


def activated(net: Network, x: str, act: str) -> str:
    """A function of each number."""
    if act == "SiLU":
        return net.node("Mul", [x, net.node("Sigmoid", [x])[0]])[0]
    return net.node(act, [x])[0]


def unit(net: Network, x: str, channels: int, how: str = "split", act: str = "Relu") -> str:
    """A unit of ShuffleNet V2, with the shuffle behind it."""
    first, last = halves(net, x, channels, how)
    half = channels // 2
    last = activated(net, net.conv(last, half, half), act)
    last = net.conv(last, half, half, 3, group=half)
    last = activated(net, net.conv(last, half, half), act)
    (both,) = net.node("Concat", [first, last], axis=1)
    return shuffle(net, both, channels, net.places, how)


def units(many: int = 3, channels: int = 116, how: str = "split", act: str = "Relu", batch: int | str = 1) -> Network:
    """So many units one behind the other, behind a convolution and before one; `y` is what these give."""
    net = Network(batch=batch)
    x = activated(net, net.conv("x", 24, channels), act)
    x = shuffle(net, x, channels, net.places, how)
    for _ in range(many):
        x = unit(net, x, channels, how, act)
    net.nodes[-1].output[0] = "shuffled"
    net.node("Conv", ["shuffled", net.weights(64, channels, 1, 1)])
    net.nodes[-1].output[0] = "y"
    return net
