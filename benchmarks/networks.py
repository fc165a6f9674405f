"""The nine networks that come with the onnx package, given random weights that keep them lively.

Their own weights are one number repeated, and outputs of those compare equal whatever one does. Here every layer's
weights are scaled by a calibration run so that its outputs have unit variance (LSUV, Mishkin & Matas 2016), batch
normalization gets the statistics that it then sees, and the last layer gives logits that leave a softmax far from
one-hot. Run as `python -m benchmarks.networks OUTDIR [NAME...]`.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from superopt.cost.ort import OnnxRuntime

Array = NDArray[Any]

LIGHT = Path(onnx.__file__).parent / "backend/test/data/light"
NAMES = tuple(sorted(p.stem.removeprefix("light_") for p in LIGHT.glob("light_*.onnx")))

LOGITS_STD = 1.5
"""Of a thousand classes the likeliest then has about 5 %."""

_SEEN_THROUGH = ("Reshape", "Unsqueeze")
_ROLES = {
    "Conv": ("", "kernel", "shift"),
    "Gemm": ("", "kernel", "shift"),
    "BatchNormalization": ("", "scale", "shift", "mean", "variance"),
    "Mul": ("scale", "scale"),
    "Add": ("shift", "shift"),
}
"""What a weight is, by the operator that consumes it and as which input."""


def network(name: str, seed: int = 0) -> onnx.ModelProto:
    """A network with random weights as initializers, the same for the same seed; its only input is the picture.

    Weights that the package gives in full (a few small ones) are drawn anew too: they fit no random neighbours.
    """
    model = onnx.load(LIGHT / f"light_{name}.onnx")
    graph = model.graph
    given = {i.name: numpy_helper.to_array(i) for i in graph.initializer}
    filled = {n.output[0]: tuple(map(int, given[n.input[0]])) for n in graph.node if n.op_type == "ConstantOfShape"}
    nodes = [n for n in graph.node if n.op_type != "ConstantOfShape"]
    read = {i for n in nodes for i in n.input}
    shapes = filled | {n: a.shape for n, a in given.items() if a.dtype == np.float32 and n in read}
    rng = np.random.default_rng(seed)
    weights = {w: _drawn(_role(nodes, w), s, rng) for w, s in shapes.items() if w in read}
    others = {n: a for n, a in given.items() if n in read and n not in weights}
    (picture,) = [i for i in graph.input if i.name not in given]

    shape = [d.dim_value for d in picture.type.tensor_type.shape.dim]
    values = {picture.name: rng.standard_normal(shape).astype(np.float32), **others, **weights}
    _calibrate(nodes, values, weights, model.opset_import, rng)

    # From version 4 on, weights need not be inputs.
    model.ir_version = max(model.ir_version, 8)
    for field, kept in (
        (graph.node, nodes),
        (graph.input, [picture]),
        (graph.initializer, [numpy_helper.from_array(a, n) for n, a in (others | weights).items()]),
    ):
        del field[:]
        field.extend(kept)
    return model


def _role(nodes: Sequence[onnx.NodeProto], weight: str) -> str:
    """What a weight is to the first node that consumes it, layout operators seen through."""
    user, place = next((n, list(n.input).index(weight)) for n in nodes if weight in n.input)
    if user.op_type in _SEEN_THROUGH:
        return _role(nodes, user.output[0])
    return _ROLES[user.op_type][place]


def _drawn(role: str, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    if role in ("scale", "variance"):
        return rng.uniform(0.5, 1.5, shape).astype(np.float32)
    values = rng.standard_normal(shape, dtype=np.float32)
    if role != "kernel":
        return np.asarray(0.2 * values, np.float32)
    # Without the mean, which the outputs of a relu share, layers pass on how pictures differ and not that they are
    # pictures.
    inputs = tuple(range(len(shape)))[1:]
    values -= values.mean(inputs, keepdims=True)
    values *= math.sqrt(2 / np.prod(shape[1:]))
    return values


def _calibrate(
    nodes: Sequence[onnx.NodeProto],
    values: dict[str, Array],
    weights: dict[str, Array],
    opsets: Sequence[onnx.OperatorSetIdProto],
    rng: np.random.Generator,
) -> None:
    """Run node by node, and mend the weights of each in `weights` by what its inputs turn out to be."""
    behind = {name: name for name in weights}  # the weight that a value is, in another layout
    last = [n for n in nodes if n.op_type in ("Conv", "Gemm")][-1]
    tail = False  # whether what follows only passes on the scale of the logits
    for node in nodes:
        if node.op_type in _SEEN_THROUGH and node.input[0] in behind:
            behind[node.output[0]] = behind[node.input[0]]
        if node.op_type == "BatchNormalization":
            _, _, _, mean, variance = node.input
            x = values[node.input[0]].astype(np.float64)
            spread = rng.uniform(0.8, 1.25, x.shape[1])  # of a trained network they fit no picture exactly
            weights[mean] = values[mean] = _coarse(x.mean((0, 2, 3)))
            weights[variance] = values[variance] = _coarse(np.maximum(x.var((0, 2, 3)) * spread, 1e-3))
        if node.op_type == "Softmax" and tail:
            _rescale(last, LOGITS_STD / float(values[node.input[0]].std()), values, weights, behind)
            return
        values[node.output[0]] = _run(node, values, opsets)
        if node.op_type in ("Conv", "Gemm"):
            by = (LOGITS_STD if node is last else 1.0) / float(values[node.output[0]].std())
            _rescale(node, by, values, weights, behind)
            values[node.output[0]] = _run(node, values, opsets)
            tail = node is last


def _rescale(
    node: onnx.NodeProto, by: float, values: dict[str, Array], weights: dict[str, Array], behind: dict[str, str]
) -> None:
    """Multiply a layer's kernel and shift, so that its outputs are multiplied."""
    by = float(_coarse(np.array(by)))
    for name in {*node.input[1:], *(behind[n] for n in node.input[1:])}:
        values[name] = np.asarray(values[name] * np.float32(by))
        if name in weights:
            weights[name] = values[name]


def _coarse(numbers: Array) -> Array:
    """Rounded to eleven bits, so that another machine, whose sums round differently, nearly always gets the same."""
    return np.asarray(np.asarray(numbers, np.float16), np.float32)


def _run(node: onnx.NodeProto, values: dict[str, Array], opsets: Sequence[onnx.OperatorSetIdProto]) -> Array:
    """The first output of one node."""
    feeds = {n: values[n] for n in node.input}
    typed = [
        onnx.helper.make_tensor_value_info(n, onnx.helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in feeds.items()
    ]
    graph = onnx.helper.make_graph([node], "one", typed, [onnx.ValueInfoProto(name=node.output[0])])
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)
    runtime = OnnxRuntime()
    return runtime.run(runtime.session(model.SerializeToString()), feeds)[0]


def write_some(kind: str, made: Mapping[str, Callable[[int], onnx.ModelProto]]) -> None:
    """A command that writes the models that it is given the names of into a folder; each is made from a seed."""
    parser = argparse.ArgumentParser(description=f"Write {kind}, with random weights, into a folder.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of: {', '.join(made)} [default: all]")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    if unknown := sorted({*arguments.names} - {*made}):
        parser.error(f"there is no model {', '.join(unknown)}; there are {', '.join(made)}")
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name in arguments.names or made:
        path = arguments.folder / f"{name}.onnx"
        onnx.save(made[name](arguments.seed), path)
        print(path)


if __name__ == "__main__":
    write_some("the networks", {name: partial(network, name) for name in NAMES})
