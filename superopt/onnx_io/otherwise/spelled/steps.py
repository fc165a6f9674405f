"""Steps that spelled activations are made of: numbers beside a value, and values that nothing else reads."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from superopt.onnx_io.operator_kinds import MOVES
from superopt.onnx_io.order import is_read_once
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import data_of, shape_of
from superopt.onnx_io.said import input_of, is_a
from superopt.substitution import elements

LEAST = 2**6
"""So many elements are computed at least: fewer are sizes, or take as long in any way."""

_NUMBERS = ("float16", "float32", "float64")

PRODUCTS = ("Conv", "ConvTranspose", "Einsum", "Gemm", "MatMul")
"""What values are made of: what is none among what these read is not to be had back behind them."""

_RECTIFIERS = "Clip Elu HardSigmoid HardSwish LeakyRelu PRelu Relu Sigmoid Softplus Tanh"
_POOLS, _NORMALIZATIONS = "AveragePool GlobalAveragePool MaxPool", "BatchNormalization LayerNormalization"
_OTHERS = "Abs Add Concat Dropout Erf Max Min Mul Neg Split Sub Sum"
_KEEPS = (*MOVES, *f"{_RECTIFIERS} {_POOLS} {_NORMALIZATIONS} {_OTHERS}".split())
"""What gives numbers for numbers, short of an overflow."""

_TOLD = ("Clip", "Dropout", "Split")
"""What reads its elements first, and then, as what moves them does, only what is done with them."""

_FARTHEST = 16
"""Behind more steps than these nothing is looked for."""


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


def is_of_numbers(program: Program, value: ir.Value | None) -> bool:
    """Whether a value is made of inputs and products by steps that give numbers for numbers.

    Choices give a number for what is none, as behind a quotient by 0, and operators of one kernel do not.
    """
    seen, stack = set[ir.Value | None](), [value]
    while stack:
        value = stack.pop()
        if value is None or value in seen or value.is_graph_input():
            continue
        seen.add(value)
        step = value.producer()
        if (data := data_of(program, value)) is not None:
            is_kept = bool(np.isfinite(data).all())
        elif is_a(step, *PRODUCTS):
            is_kept = True
        else:
            is_kept = is_a(step, *_KEEPS) and len(seen) <= _FARTHEST
            stack += [] if step is None else step.inputs[: 1 if is_a(step, *MOVES, *_TOLD) else None]
        if not is_kept:
            return False
    return True


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
