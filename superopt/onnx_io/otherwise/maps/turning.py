"""Rows that are taken and summed up, so many in each turn of a Scan: what is taken stays in the caches.

onnxruntime refuses a Scan without any turns: where there may be none, a Loop does the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from superopt.onnx_io.new_nodes import NewNodes

_FLOAT, _INT32 = ir.DataType.FLOAT, ir.DataType.INT32


def turning(
    made: NewNodes, values: ir.Value, rows: ir.Value, weights: ir.Value, sizes: tuple[int, int, int], is_open: bool
) -> ir.Value:
    """The sums of rows of values with weights: in each turn so many, each of so many rows, of so many channels; there
    may be no turns where their number `is_open`.
    """
    several, taken, channels = sizes
    given = [
        made.reshaped(rows, [-1, several, taken]),
        made.reshaped(weights, [-1, several, 1, taken]),
    ]
    if is_open:
        return _looping(made, values, given, ir.Shape([several, 1, channels]))
    own, counts = _value(made, _INT32, [several, taken]), _value(made, _FLOAT, [several, 1, taken])
    take = ir.Node("", "Gather", [values, own], [ir.AttrInt64("axis", 0)])
    add = ir.Node("", "MatMul", [counts, take.outputs[0]])
    for node in (take, add):
        made.name(node.outputs[0])
    result = add.outputs[0]
    result.type, result.shape = ir.TensorType(_FLOAT), ir.Shape([several, 1, channels])
    body = ir.Graph([own, counts], [result], nodes=[take, add], name="attended")
    return made.node("Scan", given, [ir.AttrGraph("body", body), ir.AttrInt64("num_scan_inputs", 2)])


def _looping(made: NewNodes, values: ir.Value, given: Sequence[ir.Value], shape: ir.Shape) -> ir.Value:
    """The same in a Loop, whose turns take what is theirs of what is given to all."""
    number, runs = _value(made, ir.DataType.INT64, []), _value(made, ir.DataType.BOOL, [])
    first = ir.AttrInt64("axis", 0)
    own, counts = (ir.Node("", "Gather", [value, number], [first]) for value in given)
    take = ir.Node("", "Gather", [values, own.outputs[0]], [first])
    add = ir.Node("", "MatMul", [counts.outputs[0], take.outputs[0]])
    goes_on = ir.Node("", "Identity", [runs])
    nodes = [own, counts, take, add, goes_on]
    for node in nodes:
        made.name(node.outputs[0])
    still, result = goes_on.outputs[0], add.outputs[0]
    still.type, still.shape = ir.TensorType(ir.DataType.BOOL), ir.Shape([])
    result.type, result.shape = ir.TensorType(_FLOAT), shape
    body = ir.Graph([number, runs], [still, result], nodes=nodes, name="attended")
    turns = made.node("Gather", [made.node("Shape", [given[0]]), made.held(np.array(0, np.int64))])
    return made.several("Loop", [turns, None], [ir.AttrGraph("body", body)])[0]


def _value(made: NewNodes, dtype: ir.DataType, shape: Sequence[int]) -> ir.Value:
    """A value that comes into a turn."""
    value = ir.Value(type=ir.TensorType(dtype), shape=ir.Shape(shape))
    made.name(value)
    return value
