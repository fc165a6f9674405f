"""Of which rows a value is made by linear layers, of which several one behind the other are one."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from superopt.arithmetic.carrier import Array
from superopt.onnx_io.otherwise.reading import data_of, is_a
from superopt.onnx_io.program import Program
from superopt.onnx_io.said import number
from superopt.onnx_io.turns.forms import is_scaled
from superopt.relations import is_one


def linear(program: Program, node: ir.Node | None) -> tuple[ir.Value, Array, Array] | None:
    """Of which rows a logistic function is, by which weights, and what is added: of one layer or of several."""
    value, found = (node.inputs[0] if node is not None else None), None
    while value is not None and (layer := _layer(program, value)) is not None:
        x, weights, added = layer
        if found is not None:
            if weights.shape[0] * found[1].shape[1] > weights.size + found[1].size:
                break  # few numbers between are less than one layer
            wide, dtype = found[1].astype(np.float64), weights.dtype
            weights, added = (weights @ wide).astype(dtype), (added @ wide + found[2]).astype(dtype)
        value, found = x, (x, weights, added)
    return found


def _layer(program: Program, value: ir.Value) -> tuple[ir.Value, Array, Array] | None:
    """A layer of rows."""
    node = value.producer()
    if node is None or not node.inputs or (x := node.inputs[0]) is None:
        return None
    if is_a(node, "Add"):
        for product, added in (node.inputs, node.inputs[::-1]):
            data, below = data_of(program, added), None if product is None else _layer(program, product)
            if data is not None and below is not None and data.size == below[1].shape[1]:
                return below[0], below[1], below[2] + data.reshape(-1)
        return None
    weights, known = (
        data_of(program, node.inputs[1]) if is_a(node, "MatMul", "Gemm") else None,
        program.values.get(x.name or ""),
    )
    if weights is None or weights.ndim != 2 or known is None or known.type.rank != 2 or is_one(known.shape[1]):
        return None
    if is_a(node, "MatMul"):
        return x, weights, np.zeros(weights.shape[1], weights.dtype)
    weights = weights.T if number(node, "transB", 0) else weights
    bias = data_of(program, node.inputs[2]) if len(node.inputs) > 2 else np.zeros(weights.shape[1], weights.dtype)
    if bias is None or bias.size != weights.shape[1] or is_scaled(node) or number(node, "transA", 0):
        return None
    return x, weights, bias.reshape(-1)
