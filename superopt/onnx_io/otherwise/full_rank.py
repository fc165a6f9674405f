"""Models with constant numbers beside values in rows of one element: signals with channels last, scores, distances.

onnxruntime reads such a number anew for each element, unless it has as many axes as they (`is_read_anew`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import onnx_ir as ir

from superopt.arithmetic.carrier import Array
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import data_of
from superopt.onnx_io.replacing import Draft, Put, of_nodes
from superopt.onnx_io.said import is_a
from superopt.onnx_io.skeleton import opset_of
from superopt.operators.repeats import is_read_anew
from superopt.substitution import elements

FIRST_OPSET = 7
"""Before it, numbers are broadcast where an attribute says so."""

LEAST = 2**8
"""Beside fewer elements, where each symbolic size is 1, it makes no difference."""

_OPERATORS = (
    *("Add", "Sub", "Mul", "Div", "Max", "Min", "Sum", "Mean", "Pow", "Mod", "PRelu", "Where", "And", "Or", "Xor"),
    *("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"),
)
"""What broadcasts, element by element, of numbers and truth values."""


def full_rank(program: Program) -> dict[int, Put]:
    """How to give numbers as many axes as what they stand beside, by the places of what reads them."""
    if opset_of(program.model) < FIRST_OPSET:
        return {}
    found = of_nodes(program, partial(_numbers, program))
    return {place: partial(_put, numbers) for place, numbers in found.items() if numbers}


def _numbers(program: Program, node: ir.Node) -> dict[int, Array]:
    """By which inputs of a node are constants that are read anew for each of many elements, these with all axes."""
    result = program.term(node.outputs[0]) if is_a(node, *_OPERATORS) else None
    if result is None or elements(result.shape) < LEAST or _is_norm(node):
        return {}
    found = dict[int, Array]()
    for which, value in enumerate(node.inputs):
        known = program.term(value)
        if known is not None and is_read_anew(known.shape, result.shape):  # of what is large no data are asked for
            data = data_of(program, value)
            if data is not None:
                found[which] = data.reshape((1,) * result.type.rank)
    return found


def _is_norm(node: ir.Node) -> bool:
    """Whether a node adds to a mean: runtimes know a layer norm by a number without axes."""
    return is_a(node, "Add") and any(v is not None and is_a(v.producer(), "ReduceMean") for v in node.inputs)


def _put(numbers: Mapping[int, Array], draft: Draft, node: ir.Node) -> bool:
    """Let a node read numbers of all axes."""
    made = draft.nodes("number")
    for which, data in numbers.items():
        node.replace_input_with(which, made.held(data))
    draft.model.graph.insert_before(node, made.nodes)
    return True
