"""Models that compute a recurrence of a series as one product, where each of its steps is linear.

Exponential smoothing, Holt and Winters' forecasts and linear filters are scripted step by step, and exporters write out
each: hundreds of sums of single places. All that they make is linear in the series (Kalman 1960), so it is a matrix.
Of a series with a step that is infinite or not a number all steps of the result are not numbers.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx_ir as ir

from superopt.onnx_io.otherwise.series.weighed import WAYS, Sum, sums_of
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import integers_of
from superopt.onnx_io.replacing import Draft, Put
from superopt.onnx_io.said import concat_axis, is_a

LEAST_NODES, MOST_EACH = 16, 32
"""So many nodes are left out, at least, for each of which so many elements of the matrix come in, at most."""


def recurrences(program: Program) -> dict[int, Put]:
    """How to compute what is linear in a series, by the places of what joins it."""
    if not any(node.op_type == "Concat" and len(node.inputs) > 1 for node in program.model.graph):
        return {}
    sums = sums_of(program, program.model.graph)
    places = {i: node for i, node in enumerate(program.model.graph) if _joined(sums, program, node) is not None}
    return {i: lambda draft, node: _multiply(program, draft, node) for i in places}


def _joined(sums: Mapping[ir.Value, Sum], program: Program, join: ir.Node) -> list[Sum] | None:
    """What a node joins, if all is linear in one series, along the axis of its steps, and many nodes compute it."""
    if not is_a(join, "Concat"):
        return None
    found = [_spread(sums, program, value) for value in join.inputs]
    read = [one for one in found if one is not None]
    if len(read) < len(found) or not read or not all(read[0].alike(one) for one in read):
        return None
    rank = program.values[read[0].series.name or ""].type.rank
    nodes = _computing(sums, join)
    is_less = nodes >= LEAST_NODES and read[0].times.size * len(read) <= MOST_EACH * nodes
    return read if is_less and concat_axis(join) % rank == read[0].axis else None


def _computing(sums: Mapping[ir.Value, Sum], join: ir.Node) -> int:
    """How many nodes combine steps to what a node joins."""
    stack, seen = [v for v in join.inputs if v is not None], set[ir.Node]()
    while stack:
        node = stack.pop().producer()
        if node is not None and node not in seen and node.op_type in (*WAYS, "Unsqueeze"):
            seen.add(node)
            stack.extend(v for v in node.inputs if v is not None and v in sums)
    return sum(node.op_type in WAYS for node in seen)


def _spread(sums: Mapping[ir.Value, Sum], program: Program, value: ir.Value | None) -> Sum | None:
    """A sum that has the axis of its series again, of one place."""
    node = None if value is None else value.producer()
    if not is_a(node, "Unsqueeze") or node.inputs[0] is None:
        return None
    made = sums.get(node.inputs[0])
    if made is None:
        return None
    axes, rank = integers_of(program, node, "axes", 1), program.values[made.series.name or ""].type.rank
    return made if axes is not None and [a % rank for a in axes] == [made.axis] else None


def _multiply(program: Program, draft: Draft, join: ir.Node) -> bool:
    """Multiply a series by a matrix."""
    read = _joined(sums_of(program, draft.model.graph), program, join)
    if read is None:  # another has left it out
        return False
    series, made = read[0].series, draft.nodes("series")
    known = program.values[series.name or ""]
    is_last = read[0].axis == known.type.rank - 1
    dtype, more = np.dtype(known.type.dtype), np.array([one.more for one in read])
    matrix = np.stack([one.times for one in read]).astype(dtype)
    held = made.held(np.ascontiguousarray(matrix.T) if is_last else matrix)
    result = made.node("MatMul", [series, held] if is_last else [held, series])
    if more.any():
        result = made.node("Add", [result, made.held((more if is_last else more[:, None]).astype(dtype))])
    return draft.replace(join, made, [result])
