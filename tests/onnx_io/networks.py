"""The nine networks of the onnx package, as they are and with random weights; and how models are run here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from numpy.typing import NDArray
from onnx import numpy_helper

Array = NDArray[np.float32]

LIGHT = sorted((Path(onnx.__file__).parent / "backend/test/data/light").glob("light_*.onnx"))
"""Their weights are fills, which the model computes from shapes."""

RANDOM = [
    p for p in LIGHT if p.stem.removeprefix("light_") in ("densenet121", "inception_v2", "shufflenet", "squeezenet")
]
"""Those that stay small with random weights, and differ in their operators."""


def name(path: Path) -> str:
    """A network's name, for a test's id."""
    return path.stem.removeprefix("light_")


def randomized(path: Path, seed: int = 0) -> onnx.ModelProto:
    """A light network whose weights are random numbers, positive and near 1 where they are vectors."""
    model = onnx.load(path)
    shapes = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    weights = {n.output[0]: shapes[n.input[0]] for n in model.graph.node if n.op_type == "ConstantOfShape"}
    filled = [n for n in model.graph.node if n.op_type != "ConstantOfShape"]
    rng, kept = np.random.default_rng(seed), [i for i in model.graph.initializer if i.name not in _only_shapes(model)]
    made = [numpy_helper.from_array(_weight([int(d) for d in s], rng), n) for n, s in weights.items()]
    inputs = [i for i in model.graph.input if i.name not in shapes]
    graph = onnx.helper.make_graph(filled, model.graph.name, inputs, model.graph.output, [*kept, *made])
    return onnx.helper.make_model(graph, opset_imports=model.opset_import, ir_version=8)


def _only_shapes(model: onnx.ModelProto) -> set[str]:
    read = {i for n in model.graph.node if n.op_type != "ConstantOfShape" for i in n.input}
    return {i.name for i in model.graph.initializer} - read


def _weight(shape: Sequence[int], rng: np.random.Generator) -> Array:
    if len(shape) < 2:
        return rng.uniform(0.5, 1.5, shape).astype(np.float32)
    return np.asarray(rng.standard_normal(shape) * np.sqrt(2 / np.prod(shape[1:])), dtype=np.float32)


def run(model: onnx.ModelProto, feed: Mapping[str, Array] | None = None, seed: int = 0) -> list[Array]:
    """The outputs under onnxruntime without any optimization, on given or on seeded normal inputs."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    rng, weights = np.random.default_rng(seed), {i.name for i in model.graph.initializer}
    if feed is None:
        asked = [i for i in session.get_inputs() if i.name not in weights]
        feed = {i.name: rng.standard_normal(i.shape).astype(np.float32) for i in asked}
    return list(session.run(None, dict(feed)))


def assert_close(actual: Sequence[Array], expected: Sequence[Array], relative: float = 1e-4) -> None:
    """That outputs agree up to rounding, measured by the largest value of each, and are finite and not all zero."""
    assert len(actual) == len(expected) > 0
    for a, e in zip(actual, expected, strict=True):
        assert a.shape == e.shape
        assert a.dtype == e.dtype
        assert np.isfinite(e).all(), "the expected output says nothing"
        assert np.abs(e).max() > 0, "the expected output says nothing"
        assert np.abs(a - e).max() <= relative * np.abs(e).max()
