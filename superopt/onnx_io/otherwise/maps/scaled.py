"""Values that are others, times a number, and more or less by one."""

from __future__ import annotations

from typing import NamedTuple

import onnx_ir as ir

from superopt.onnx_io.otherwise.bases.views import uniform
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import shape_of
from superopt.onnx_io.said import is_a
from superopt.relations import equal_shapes


class Scaled(NamedTuple):
    """`factor · of + shift`."""

    of: ir.Value
    factor: float
    shift: float


def scaled(program: Program, value: ir.Value) -> Scaled:
    """What a value is made of by numbers alone."""
    found = Scaled(value, 1.0, 0.0)
    while (before := _before(program, found)) is not None:
        found = before
    return found


def _before(program: Program, found: Scaled) -> Scaled | None:
    node, (value, factor, shift) = found.of.producer(), found
    if not is_a(node, "Add", "Sub", "Mul", "Div"):
        return None
    left, right = node.inputs
    number, of = None if right is None else uniform(program, right), left
    if number is None and left is not None and not is_a(node, "Div"):
        number, of = uniform(program, left), right
    shape, before = shape_of(program, value), shape_of(program, of)
    if number is None or of is None or shape is None or before is None or not equal_shapes(shape, before):
        return None
    if is_a(node, "Mul"):
        return Scaled(of, factor * number, shift)
    if is_a(node, "Div"):
        return Scaled(of, factor / number, shift) if number else None
    if is_a(node, "Add"):
        return Scaled(of, factor, shift + factor * number)
    return Scaled(of, factor, shift - factor * number) if of is left else Scaled(of, -factor, shift + factor * number)
