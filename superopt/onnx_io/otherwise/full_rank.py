"""Models with constant numbers beside values in rows of one element: signals with channels last, scores, distances.

onnxruntime reads such a number anew for each element, unless it has as many axes as they (`is_read_anew`).
"""

from __future__ import annotations

from functools import partial

import onnx_ir as ir

from superopt.onnx_io.new_nodes import NewNodes
from superopt.onnx_io.otherwise.reading import data_of, is_a
from superopt.onnx_io.program import Program
from superopt.onnx_io.replacing import Draft, Put
from superopt.onnx_io.skeleton import opset_of
from superopt.onnx_io.turns.rows import elements
from superopt.operators.repeats import is_read_anew

FIRST_OPSET = 7
"""Before it, numbers are broadcast where an attribute says so."""

LEAST = 2**8
"""Beside fewer elements, where each symbolic size is 1, it makes no difference."""

_OPERATORS = ("Add", "Sub", "Mul", "Div", "Max", "Min", "Pow", "Less", "LessOrEqual", "Greater", "GreaterOrEqual")
"""What is computed of two elements each, and slow so."""


def full_rank(program: Program) -> dict[int, Put]:
    """How to give numbers as many axes as what they stand beside, by the places of what reads them."""
    if (opset_of(program.model) or 1) < FIRST_OPSET:
        return {}
    found = ((place, _number(program, node)) for place, node in enumerate(program.model.graph))
    return {place: partial(_put, program, which) for place, which in found if which is not None}


def _number(program: Program, node: ir.Node) -> int | None:
    """Which input of a node is a constant number that is read anew for each of many elements."""
    if not is_a(node, *_OPERATORS) or len(node.inputs) != 2:
        return None
    for which, (one, other) in enumerate((tuple(node.inputs), tuple(reversed(node.inputs)))):
        beside = None if other is None else program.values.get(other.name or "")
        if beside is None or other is None or elements(beside.shape) < LEAST or _is_mean(node, other):
            continue
        data = data_of(program, one)
        if data is not None and is_read_anew(data.shape, beside.shape):
            return which
    return None


def _is_mean(node: ir.Node, value: ir.Value) -> bool:
    """Whether a node adds to a mean: runtimes know a layer norm by a number without axes."""
    return is_a(node, "Add") and is_a(value.producer(), "ReduceMean")


def _put(program: Program, which: int, draft: Draft, node: ir.Node) -> bool:
    """Let a node read the number as one of all axes."""
    data, beside = data_of(program, node.inputs[which]), node.inputs[1 - which]
    known = None if beside is None else program.values.get(beside.name or "")
    if data is None or known is None:  # another has changed it
        return False
    made = NewNodes("number", draft.taken)
    number = made.held(data.reshape((1,) * known.type.rank))
    draft.model.graph.insert_before(node, made.nodes)
    node.replace_input_with(which, number)
    return True
