"""Rows that are taken and summed up, so many in each turn of a Scan: what is taken stays in the caches."""

from __future__ import annotations

import onnx_ir as ir

from superopt.onnx_io.new_nodes import NewNodes

_FLOAT, _INT32 = ir.DataType.FLOAT, ir.DataType.INT32


def turning(
    made: NewNodes, values: ir.Value, rows: ir.Value, weights: ir.Value, sizes: tuple[int, int, int]
) -> ir.Value:
    """The sums of rows of values with weights: in each turn so many, each of so many rows, of so many channels."""
    several, taken, channels = sizes
    given = [
        made.node("Reshape", [rows, made.integers([-1, several, taken])]),
        made.node("Reshape", [weights, made.integers([-1, several, 1, taken])]),
    ]
    own, counts = _value(made, _INT32, [several, taken]), _value(made, _FLOAT, [several, 1, taken])
    take = ir.Node("", "Gather", [values, own], [ir.AttrInt64("axis", 0)])
    add = ir.Node("", "MatMul", [counts, take.outputs[0]])
    for node in (take, add):
        made.name(node.outputs[0])
    result = add.outputs[0]
    result.type, result.shape = ir.TensorType(_FLOAT), ir.Shape([several, 1, channels])
    body = ir.Graph([own, counts], [result], nodes=[take, add], name="attended")
    return made.node("Scan", given, [ir.AttrGraph("body", body), ir.AttrInt64("num_scan_inputs", 2)])


def _value(made: NewNodes, dtype: ir.DataType, shape: list[int]) -> ir.Value:
    """A value that comes into a turn."""
    value = ir.Value(type=ir.TensorType(dtype), shape=ir.Shape(shape))
    made.name(value)
    return value
