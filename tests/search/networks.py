"""Small networks with seeded weights, as files."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper, parser

Weights = Mapping[str, NDArray[np.float32]]


def write(path: Path, text: str, weights: Weights | None = None, opset: int = 17) -> Path:
    """A model from ONNX's own text, with weights."""
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> {text}')
    model.graph.initializer.extend(numpy_helper.from_array(w, name) for name, w in (weights or {}).items())
    onnx.checker.check_model(model)
    onnx.save(model, path)
    return path


def classifier_weights(seed: int = 0) -> dict[str, NDArray[np.float32]]:
    rng = np.random.default_rng(seed)
    shapes = {"k": (8, 3, 3, 3), "b": (8,), "w": (8 * 6 * 6, 5), "c": (5,)}
    return {n: (rng.standard_normal(s) / np.sqrt(np.prod(s[1:]))).astype(np.float32) for n, s in shapes.items()}


CLASSIFIER = """
network (float[1,3,8,8] x) => (float[1,5] y) {
    a = Conv(x, k, b)
    r = Relu(a)
    f = Flatten(r)
    m = MatMul(f, w)
    y = Add(m, c)
}
"""


def classifier(path: Path, weights: Weights | None = None) -> Path:
    """Convolution, relu, matrix product."""
    return write(path, CLASSIFIER, weights or classifier_weights())


def products(path: Path, count: int, size: int = 192) -> Path:
    """A chain of matrix products that the runtime cannot fuse: each one more costs as much again."""
    rng = np.random.default_rng(0)
    names = [f"w{i}" for i in range(count)]
    weights = {n: (rng.standard_normal((size, size)) / size**0.5).astype(np.float32) for n in names}
    steps, last = [], "x"
    for name in names:
        steps.append(f"t{name} = MatMul({last}, {name}) r{name} = Relu(t{name})")
        last = f"r{name}"
    body = " ".join(steps)
    return write(
        path, f"chain (float[{size},{size}] x) => (float[{size},{size}] y) {{ {body} y = Identity({last}) }}", weights
    )
