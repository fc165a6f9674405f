"""Steps that spelled activations are made of: numbers beside a value, and values that nothing else reads."""

from __future__ import annotations

from typing import NamedTuple

import onnx_ir as ir

from superopt.onnx_io.order import is_read_once
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import data_of, shape_of
from superopt.onnx_io.said import input_of, is_a
from superopt.substitution import elements

LEAST = 2**6
"""So many elements are computed at least: fewer are sizes, or take as long in any way."""

_NUMBERS = ("float16", "float32", "float64")


class Beside(NamedTuple):
    """A value, and a number that an operator of two takes beside it."""

    value: ir.Value
    number: float
    place: int
    """Which input the value is."""


def beside(program: Program, node: ir.Node | None, *op_types: str) -> Beside | None:
    """What a node of one of these operators takes beside one number, which leaves its shape as it is."""
    if not is_a(node, *op_types) or len(node.inputs) != 2:
        return None
    for place in (1, 0):
        value, data = node.inputs[1 - place], data_of(program, node.inputs[place])
        shape = shape_of(program, value)
        if value is not None and shape is not None and data is not None and data.size == 1 and data.ndim <= len(shape):
            return Beside(value, float(data.item()), 1 - place)
    return None


def is_wide(program: Program, value: ir.Value, *dtypes: str) -> bool:
    """Whether a value has floating-point numbers, of these types where some are named, and more than a few of them."""
    known = program.term(value)
    return known is not None and known.type.dtype in (dtypes or _NUMBERS) and elements(known.shape) >= LEAST


def step_before(value: ir.Value) -> ir.Node | None:
    """What computes a value that one node of the same graph reads, and nothing else."""
    node = value.producer()
    return node if node is not None and is_read_once(value) and len(node.outputs) == 1 else None


class Led(NamedTuple):
    """A value by its name, and the places of the inputs that lead to it from a node on, the node's own first."""

    name: str
    path: tuple[int, ...]

    def of(self, node: ir.Node) -> ir.Value | None:
        """It in a copy of the model; None where a node in between is another by now."""
        step: ir.Node | None = node
        value: ir.Value | None = None
        for place in self.path:
            value = None if step is None else input_of(step, place)
            step = None if value is None else value.producer()
        return value if value is not None and value.name == self.name else None
