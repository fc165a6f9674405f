"""Values that have the elements of others, in the same order."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from superopt.dim import product
from superopt.onnx_io.operator_kinds import VIEWS
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import data_of, shape_of
from superopt.onnx_io.said import is_a, number
from superopt.relations import are_equal, is_one

_VIEWS = (*VIEWS, "Identity", "Gather")
"""What gives the same elements in the same order, where it gives as many; of gathered ones, from an axis of one."""


def same_elements(program: Program, value: ir.Value) -> ir.Value:
    """The first value from which on nothing but shapes is changed."""
    while (before := _before(program, value)) is not None:
        value = before
    return value


def _before(program: Program, value: ir.Value) -> ir.Value | None:
    node = value.producer()
    if not is_a(node, *_VIEWS) or not node.inputs:
        return None
    before, after = shape_of(program, node.inputs[0]), shape_of(program, value)
    if before is None or after is None or not are_equal(product(before), product(after)):
        return None
    if is_a(node, "Gather") and not (before and is_one(before[number(node, "axis", 0)])):
        return None
    return node.inputs[0]


def same_numbers(program: Program, value: ir.Value) -> ir.Value:
    """The first value from which on nothing but shapes is changed, and numbers are repeated behind each other."""
    while True:
        value = same_elements(program, value)
        node = value.producer()
        inner = node.inputs[0] if is_a(node, "Expand") else None
        shape = shape_of(program, inner)
        if inner is None or not shape or not is_one(shape[-1]):
            return value
        value = inner


def uniform(program: Program, value: ir.Value) -> float | None:
    """The number that all of a value is, where it is one, however many there are."""
    node, data = value.producer(), data_of(program, value)
    if data is None and is_a(node, "Expand", "Identity", "Reshape", "Slice", "Unsqueeze"):
        return None if node.inputs[0] is None else uniform(program, node.inputs[0])
    if data is None and is_a(node, "ConstantOfShape"):
        data = node.attributes["value"].as_tensor().numpy() if "value" in node.attributes else np.zeros(1)
    is_one_number = data is not None and data.size and bool((data == data.reshape(-1)[0]).all())
    return float(data.reshape(-1)[0]) if data is not None and is_one_number else None
