"""Which of two is larger, by a comparison: as masks of one thing are told from the scores of two classes.

onnxruntime 1.32 finds the largest along any axis but the last by steps in memory, one after the other: of two maps of
256 by 256 in 142 µs, and 33 where they are compared. Of two that are equal both give the first.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import onnx_ir as ir

from superopt.onnx_io.program import Program
from superopt.onnx_io.replacing import Draft, Put, of_nodes
from superopt.onnx_io.said import is_a, number
from superopt.substitution import elements

LEAST = 2**12
"""So many numbers there are at least, where each symbolic size is 1."""

_OPERATORS = {"ArgMax": "Greater", "ArgMin": "Less"}
"""What tells that the second of two is meant, and not the first."""


def larger(program: Program) -> dict[int, Put]:
    """How to compare two, by the places of what finds the largest or the smallest of them."""
    return {place: partial(_put, axis) for place, axis in of_nodes(program, partial(_axis, program)).items()}


def _axis(program: Program, node: ir.Node) -> int | None:
    """The axis of two along which a node finds one, if it is not the last: there neighbours are taken apart slowly."""
    if not is_a(node, *_OPERATORS) or number(node, "select_last_index", 0):
        return None
    value = node.inputs[0]
    known = program.term(value)
    if known is None or known.type.dtype != "float32" or elements(known.shape) < LEAST:
        return None
    rank = known.type.rank
    axis = number(node, "axis", 0) % rank
    size = known.shape[axis]
    return axis if axis < rank - 1 and isinstance(size, int) and size == 2 else None


def _put(axis: int, draft: Draft, node: ir.Node) -> bool:
    """Compare both; where the axis goes, they are taken without it."""
    value, made = node.inputs[0], draft.nodes("larger")
    assert value is not None
    shape = (1,) if number(node, "keepdims", 1) else ()
    first, second = (
        made.node("Gather", [value, made.held(np.full(shape, i, np.int64))], [ir.AttrInt64("axis", axis)])
        for i in (0, 1)
    )
    is_second = made.node(_OPERATORS[node.op_type], [second, first])
    result = made.cast(is_second, ir.DataType.INT64)
    return draft.replace(node, made, [result])
