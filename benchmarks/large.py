"""`python -m benchmarks.large OUT.onnx [--nodes 13000]` writes a model of many small nodes: windowed attention, as Swin
has it (Liu et al. 2021), in the words that torch exports it in.

Every second block looks at windows that are shifted by half of one. Three stages, each of half the picture's size and
twice the channels of the one before.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

WINDOW, SIDE, CHANNELS, HEAD = 7, 28, 32, 16
"""The side of a window, of the picture at first, its channels then, and the channels of a head."""


class _Writer:
    """Collects nodes and weights; values are handled by name."""

    def __init__(self, seed: int) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self._rng = np.random.default_rng(seed)
        self._numbers: dict[object, str] = {}

    def node(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        name = f"{op_type.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, list(inputs), [name], name, **attributes))
        return name

    def split(self, value: str, axis: int, parts: int) -> list[str]:
        names = [f"split_{len(self.nodes)}_{i}" for i in range(parts)]
        self.nodes.append(helper.make_node("Split", [value], names, f"split_{len(self.nodes)}", axis=axis))
        return names

    def weight(self, *shape: int) -> str:
        spread = np.sqrt(shape[0]) if len(shape) > 1 else 8.0
        return self._enter((self._rng.standard_normal(shape) / spread).astype(np.float32))

    def number(self, value: float) -> str:
        return self._known(value, np.float32(value))

    def integers(self, *values: int) -> str:
        return self._known(values, np.array(values, np.int64))

    def _known(self, key: object, array: NDArray[Any] | np.generic) -> str:
        if key not in self._numbers:
            self._numbers[key] = self._enter(np.asarray(array))
        return self._numbers[key]

    def _enter(self, array: NDArray[Any]) -> str:
        name = f"weight_{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(array, name))
        return name


def model(nodes: int = 13_000, seed: int = 0) -> onnx.ModelProto:
    """A model of about so many nodes, with random weights."""
    out, side, channels = _Writer(seed), SIDE, CHANNELS
    x, blocks = "x", 0
    for stage in range(3):
        while len(out.nodes) < nodes * (stage + 1) / 3:
            x = _block(out, x, side, channels, shift=WINDOW // 2 if blocks % 2 and side > WINDOW else 0)
            blocks += 1
        if stage < 2:
            x, side, channels = _merged(out, x, side, channels), side // 2, 2 * channels
    y = out.node("ReduceMean", _normalized(out, x, channels), axes=[1], keepdims=0)
    y = out.node("MatMul", y, out.weight(channels, 10))
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, SIDE**2, CHANNELS])
    graph = helper.make_graph(
        out.nodes, "large", [given], [helper.make_tensor_value_info(y, TensorProto.FLOAT, [1, 10])], out.weights
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _block(out: _Writer, x: str, side: int, channels: int, shift: int) -> str:
    """Attention within windows, then two layers for each token, both added to what came in."""
    image = out.node("Reshape", _normalized(out, x, channels), out.integers(1, side, side, channels))
    if shift:
        image = _rolled(out, _rolled(out, image, 1, shift), 2, shift)
    windows = _attention(out, _swapped(out, image, side, channels, apart=True), side, channels)
    image = _swapped(out, windows, side, channels, apart=False)
    if shift:
        image = _rolled(out, _rolled(out, image, 1, side - shift), 2, side - shift)
    x = out.node("Add", x, out.node("Reshape", image, out.integers(1, side**2, channels)))
    hidden = _layer(out, _normalized(out, x, channels), channels, 2 * channels)
    erf = out.node("Erf", out.node("Div", hidden, out.number(2**0.5)))
    hidden = out.node("Mul", out.node("Mul", hidden, out.node("Add", erf, out.number(1))), out.number(0.5))
    return out.node("Add", x, _layer(out, hidden, 2 * channels, channels))


def _attention(out: _Writer, x: str, side: int, channels: int) -> str:
    count, size, heads = (side // WINDOW) ** 2, WINDOW**2, channels // HEAD
    apart = out.node("Reshape", _layer(out, x, channels, 3 * channels), out.integers(count, size, 3, heads, HEAD))
    parts = out.split(out.node("Transpose", apart, perm=[2, 0, 3, 1, 4]), 0, 3)
    q, k, v = (out.node("Squeeze", part, out.integers(0)) for part in parts)
    scaled = out.node("Mul", q, out.number(HEAD**-0.5))
    scores = out.node("MatMul", scaled, out.node("Transpose", k, perm=[0, 1, 3, 2]))
    scores = out.node("Add", scores, out.weight(1, heads, size, size))
    mixed = out.node("Transpose", out.node("MatMul", out.node("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
    return _layer(out, out.node("Reshape", mixed, out.integers(count, size, channels)), channels, channels)


def _layer(out: _Writer, x: str, channels: int, to: int) -> str:
    return out.node("Add", out.node("MatMul", x, out.weight(channels, to)), out.weight(to))


def _normalized(out: _Writer, x: str, channels: int) -> str:
    centred = out.node("Sub", x, out.node("ReduceMean", x, axes=[-1]))
    variance = out.node("ReduceMean", out.node("Pow", centred, out.number(2)), axes=[-1])
    root = out.node("Sqrt", out.node("Add", variance, out.number(1e-5)))
    scaled = out.node("Mul", out.node("Div", centred, root), out.weight(channels))
    return out.node("Add", scaled, out.weight(channels))


def _swapped(out: _Writer, x: str, side: int, channels: int, apart: bool) -> str:
    """A picture as its windows where these are to be `apart`, else what was made of windows as a picture."""
    count = side // WINDOW
    before = (count, WINDOW, count, WINDOW) if apart else (count, count, WINDOW, WINDOW)
    after = (count**2, WINDOW**2, channels) if apart else (1, side, side, channels)
    split = out.node("Reshape", x, out.integers(1, *before, channels))
    return out.node("Reshape", out.node("Transpose", split, perm=[0, 1, 3, 2, 4, 5]), out.integers(*after))


def _rolled(out: _Writer, x: str, axis: int, by: int) -> str:
    ends = [(by, 2**31), (0, by)]
    parts = [out.node("Slice", x, *(out.integers(n) for n in (*end, axis))) for end in ends]
    return out.node("Concat", *parts, axis=axis)


def _merged(out: _Writer, x: str, side: int, channels: int) -> str:
    """Each four neighbours as one of four times the channels, of which twice are kept."""
    image = out.node("Reshape", x, out.integers(1, side, side, channels))
    corners = [
        out.node("Slice", image, out.integers(i, j), out.integers(side, side), out.integers(1, 2), out.integers(2, 2))
        for j in (0, 1)
        for i in (0, 1)
    ]
    flat = out.node("Reshape", out.node("Concat", *corners, axis=-1), out.integers(1, side**2 // 4, 4 * channels))
    return out.node("MatMul", _normalized(out, flat, 4 * channels), out.weight(4 * channels, 2 * channels))


def main() -> None:
    """Write the model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--nodes", type=int, default=13_000)
    arguments = parser.parse_args()
    made = model(arguments.nodes)
    onnx.checker.check_model(made)
    onnx.save(made, arguments.out)
    print(f"{arguments.out}: {len(made.graph.node)} nodes, {arguments.out.stat().st_size / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
