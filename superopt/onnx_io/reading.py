"""What nodes say that takes a program to read: constants, reductions with their axes, and bounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from superopt.arithmetic.carrier import Array
from superopt.dim import Dim, Shape, product
from superopt.errors import InvalidModel
from superopt.onnx_io.program import Program
from superopt.onnx_io.said import input_of, is_a, number
from superopt.onnx_io.skeleton import opset_of
from superopt.relations import are_equal

EXACT = 2**24
"""Fewer ones are added up exactly in any order, in 32-bit floating-point numbers too."""


def data_of(program: Program, value: ir.Value | None) -> Array | None:
    """The value of a constant."""
    try:
        return program.data(value.name or "") if program.is_constant(value) else None
    except InvalidModel:
        return None


def integers_of(program: Program, node: ir.Node, name: str, place: int) -> list[int] | None:
    """Integers that an attribute lists, or in later opsets a constant input; none where neither is there, None where
    they are computed.
    """
    if name in node.attributes:
        return list(node.attributes[name].as_ints())
    if (given := input_of(node, place)) is None:
        return []
    data = data_of(program, given)
    return None if data is None else [int(i) for i in data.reshape(-1)]


def shape_of(program: Program, value: ir.Value | None) -> Shape | None:
    """The shape of a value, where it is known."""
    known = program.term(value)
    return None if known is None else known.shape


def told(shape: Sequence[Dim]) -> list[int] | None:
    """The sizes of a shape as a Reshape takes them, which tells one that is no number; None where several are none."""
    sizes = [d if isinstance(d, int) else -1 for d in shape]
    return sizes if sizes.count(-1) < 2 else None


def sizes_of(of: Shape, to: Shape) -> list[int] | None:
    """The sizes that a Reshape is told to make a shape of another: 0 for what stays where it is and is no number; None
    where several are none and are elsewhere.
    """
    stays = [i < len(of) and are_equal(of[i], d) for i, d in enumerate(to)]
    sizes = [d if isinstance(d, int) else 0 if same else -1 for d, same in zip(to, stays, strict=True)]
    return sizes if sizes.count(-1) < 2 else None


LAST_BY_ITSELF = 13
"""From this opset on a softmax is along the last axis where nothing else is said."""


def is_softmax_of_rows(program: Program, node: ir.Node) -> bool:
    """Whether a node is a softmax along the last axis of what has a known rank."""
    known = program.term(node.outputs[0]) if is_a(node, "Softmax") else None
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
    known = program.term(of)
    if of is None or known is None or len(node.outputs) != 1:
        return None
    rank, axes = known.type.rank, integers_of(program, node, "axes", 1)
    if axes is None or (not axes and number(node, "noop_with_empty_axes", 0) == 1):
        return None
    told = tuple(sorted({axis % rank for axis in axes})) if rank and axes else tuple(range(rank))
    is_told = told and all(-rank <= axis < rank for axis in axes)
    keeps = bool(number(node, "keepdims", 1))
    return Reduction(of, known.shape, known.type.dtype, told, keeps) if is_told else None


BOUNDS_GIVEN = 11
"""From this opset on a Clip reads its bounds, which attributes tell before."""


def bounds_of(program: Program, node: ir.Node) -> tuple[float, float] | None:
    """Between which 32-bit numbers a Clip or a Relu takes what it reads to the nearest; None of any other node, and
    where that is computed, or the wrong way round.
    """
    if is_a(node, "Relu"):
        return 0.0, np.inf
    if not is_a(node, "Clip"):
        return None
    ends = [-np.inf, np.inf]
    if opset_of(program.model) < BOUNDS_GIVEN:
        said = [node.attributes.get(name) for name in ("min", "max")]
        ends = [end if told is None else told.as_float() for told, end in zip(said, ends, strict=True)]
        return (ends[0], ends[1]) if ends[0] <= ends[1] else None
    for i, value in enumerate(node.inputs[1:]):
        data = data_of(program, value)
        if value is not None and (data is None or data.size != 1 or data.dtype != np.float32):
            return None
        ends[i] = ends[i] if data is None else data.item()
    return (ends[0], ends[1]) if ends[0] <= ends[1] else None
