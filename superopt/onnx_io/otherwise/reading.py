"""What nodes say of which something is written otherwise: constants, and reductions with their axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import onnx_ir as ir

from superopt.arithmetic.carrier import Array
from superopt.dim import Dim, Shape, product
from superopt.errors import InvalidModel
from superopt.onnx_io.program import Program
from superopt.onnx_io.said import is_a, number
from superopt.onnx_io.skeleton import opset_of

EXACT = 2**24
"""Fewer ones are added up exactly in any order, in 32-bit floating-point numbers too."""


def data_of(program: Program, value: ir.Value | None) -> Array | None:
    """The value of a constant."""
    try:
        return program.data(value.name or "") if value is not None and (value.name or "") in program.constants else None
    except InvalidModel:
        return None


def shape_of(program: Program, value: ir.Value | None) -> Shape | None:
    """The shape of a value, where it is known."""
    known = None if value is None else program.values.get(value.name or "")
    return None if known is None else known.shape


def told(shape: Sequence[Dim]) -> list[int] | None:
    """The sizes of a shape as a Reshape takes them, which tells one that is no number; None where several are none."""
    sizes = [d if isinstance(d, int) else -1 for d in shape]
    return sizes if sizes.count(-1) < 2 else None


LAST_BY_ITSELF = 13
"""From this opset on a softmax is along the last axis where nothing else is said."""


def is_softmax_of_rows(program: Program, node: ir.Node) -> bool:
    """Whether a node is a softmax along the last axis of what has a known rank."""
    known = program.values.get(node.outputs[0].name or "") if is_a(node, "Softmax") else None
    axis = number(node, "axis", -1 if opset_of(program.model) >= LAST_BY_ITSELF else 1)
    return known is not None and axis in (-1, known.type.rank - 1)


class Reduction(NamedTuple):
    """A node that gives one number for many, which lie along these axes of what has this shape and type."""

    of: ir.Value
    shape: Shape
    dtype: str
    axes: tuple[int, ...]
    keeps: bool
    """Whether the axes stay, each of one element."""

    @property
    def many(self) -> Dim:
        """Of how many numbers one is made."""
        return product([self.shape[axis] for axis in self.axes])

    @property
    def is_exact(self) -> bool:
        """Whether it is known that there is a number, and that so many ones are added up exactly."""
        return isinstance(self.many, int) and 0 < self.many < EXACT


def reduction(program: Program, node: ir.Node, *op_types: str) -> Reduction | None:
    """What a node reduces, if it is of one of these operators; None where it is not told along which axes."""
    of = node.inputs[0] if is_a(node, *op_types) else None
    known = None if of is None else program.values.get(of.name or "")
    if of is None or known is None or len(node.outputs) != 1:
        return None
    rank, given = known.type.rank, node.inputs[1] if len(node.inputs) > 1 else None
    axes = [int(axis) for axis in node.attributes["axes"].as_ints()] if "axes" in node.attributes else []
    if given is not None:
        data = data_of(program, given)
        if data is None:
            return None
        axes = [int(axis) for axis in data.reshape(-1)]
    if not axes and number(node, "noop_with_empty_axes", 0) == 1:
        return None
    told = tuple(sorted({axis % rank for axis in axes})) if rank and axes else tuple(range(rank))
    is_told = told and all(-rank <= axis < rank for axis in axes)
    keeps = bool(number(node, "keepdims", 1))
    return Reduction(of, known.shape, known.type.dtype, told, keeps) if is_told else None
