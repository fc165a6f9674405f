"""What is left of the nodes that move channels."""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx

from tests.onnx_io.otherwise.reading import operators_of

MOVES = {"Concat", "Gather", "Reshape", "Slice", "Split", "Transpose"}


def feeds(source: onnx.ModelProto, batch: int = 2) -> dict[str, np.ndarray]:
    sizes = [d.dim_value or batch for d in source.graph.input[0].type.tensor_type.shape.dim]
    return {"x": np.random.default_rng(0).standard_normal(sizes).astype(np.float32)}


def moves(source: onnx.ModelProto) -> Counter[str]:
    """Which nodes that move are left of a model that computes the same."""
    return Counter(op for op in operators_of(source, feeds(source)) if op in MOVES)
