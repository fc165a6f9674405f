"""Linear layers one behind the other, which are one."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from superopt.onnx_io.otherwise.linear import Layer, layer_of
from superopt.onnx_io.program import Program


def merged(program: Program, value: ir.Value | None) -> Layer | None:
    """The layer that gives a value, with those that it is behind as far as one is less work."""
    found: Layer | None = None
    while value is not None and (layer := layer_of(program, value)) is not None and layer.matrix.shape[0] > 1:
        if found is None:
            found = layer
        elif layer.matrix.shape[0] * found.matrix.shape[1] > layer.matrix.size + found.matrix.size:
            break  # few numbers between are less than one layer
        else:
            found = _one_of(layer, found)
        value = layer.rows
    return found


def _one_of(first: Layer, second: Layer) -> Layer:
    """What two layers one behind the other are."""
    wide, dtype = second.matrix.astype(np.float64), first.matrix.dtype
    parts = [second.added, None if first.added is None else first.added @ wide]
    added = [part for part in parts if part is not None]
    matrix, nodes = (first.matrix @ wide).astype(dtype), (*first.nodes, *second.nodes)
    return Layer(first.rows, matrix, np.sum(added, axis=0).astype(dtype) if added else None, nodes)
