"""Numbers that are repeated, as exporters write them for operators that ask for one number for each element."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from superopt.arithmetic.carrier import Array
from superopt.dim import product
from superopt.errors import InvalidModel
from superopt.onnx_io.new_nodes import NewNodes
from superopt.onnx_io.program import Program
from superopt.onnx_io.said import is_a
from superopt.operators.layout import Expand
from superopt.relations import are_equal, is_one
from superopt.term import Term

REPEAT = ("Expand", "Tile")
"""What repeats its first input."""


class Repeated(NamedTuple):
    """What an input of nodes repeats along all of its axes but some."""

    place: int
    held: Array | None
    """The numbers, where they are constant; else they are what is read by the node that repeats them."""

    def reshaped(self, made: NewNodes, node: ir.Node, shape: Sequence[int]) -> ir.Value:
        """The numbers that an input of a node repeats, as 64-bit integers of a shape, as Reshape takes it."""
        if self.held is not None:
            sizes = [self.held.shape[i] if d == 0 else d for i, d in enumerate(shape)]
            return made.held(np.ascontiguousarray(self.held.astype(np.int64)).reshape(sizes))
        numbers = repeats(node.inputs[self.place])
        assert numbers is not None
        return made.reshaped(numbers, shape)


def repeated(
    program: Program, made: Mapping[str, Term], node: ir.Node, place: int, axes: Sequence[int]
) -> Repeated | None:
    """What an input of a node repeats, if it differs along these axes alone, given the terms that values are made by:
    64-bit integers, or constants.
    """
    value = node.inputs[place]
    known = program.term(value)
    if value is None or known is None:
        return None
    if program.is_constant(value):
        held = _held(program, value.name or "", axes)
        return None if held is None else Repeated(place, held)
    repeat, numbers = made.get(known.label), repeats(value)
    if repeat is None or numbers is None or not isinstance(repeat.operator, Expand):
        return None
    kept, column = [a for a in axes if not is_one(known.shape[a])], program.term(numbers)
    is_all = column is not None and are_equal(product(column.shape), product([known.shape[a] for a in kept]))
    fits = column is not None and column.type.dtype == "int64" and is_all
    return Repeated(place, None) if fits and list(repeat.operator.axes) == kept else None


def repeats(value: ir.Value | None) -> ir.Value | None:
    """What the node that gives a value repeats, if that is all that it does."""
    node = None if value is None else value.producer()
    return node.inputs[0] if is_a(node, *REPEAT) else None


def _held(program: Program, name: str, axes: Sequence[int]) -> Array | None:
    """A constant with one element along all axes but some, if it is the same there."""
    try:
        data = program.data(name)
    except InvalidModel:
        return None
    finally:
        program.constants.forget(name)  # they are one for each element, of which few are kept
    if not data.size or not np.issubdtype(data.dtype, np.integer):
        return None
    first = data[tuple(slice(None) if a in axes else slice(1) for a in range(data.ndim))]
    return first.copy() if (data == first).all() else None
