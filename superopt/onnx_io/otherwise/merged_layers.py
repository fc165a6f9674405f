"""Of which rows a value is made by linear layers, of which several one behind the other are one."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from superopt.arithmetic.carrier import Array
from superopt.onnx_io.otherwise.linear import layer_of
from superopt.onnx_io.program import Program


def linear(program: Program, node: ir.Node | None) -> tuple[ir.Value, Array, Array] | None:
    """Of which rows a logistic function is, by which weights, and what is added: of one layer or of several."""
    value, found = (node.inputs[0] if node is not None else None), None
    while value is not None and (layer := layer_of(program, value)) is not None and layer.matrix.shape[0] > 1:
        weights = layer.matrix
        added = np.zeros(weights.shape[1], weights.dtype) if layer.added is None else layer.added
        if found is not None:
            if weights.shape[0] * found[1].shape[1] > weights.size + found[1].size:
                break  # few numbers between are less than one layer
            wide, dtype = found[1].astype(np.float64), weights.dtype
            weights, added = (weights @ wide).astype(dtype), (added @ wide + found[2]).astype(dtype)
        value, found = layer.rows, (layer.rows, weights, added)
    return found
