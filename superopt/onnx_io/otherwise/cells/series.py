"""What steps of a recurrent network read, as one series: time in front, then rows, then what each row has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from superopt.arithmetic.carrier import Array
from superopt.dim import Dim
from superopt.onnx_io.new_nodes import NewNodes
from superopt.onnx_io.otherwise.networks.columns import Columns, Placed
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import data_of
from superopt.onnx_io.said import is_a


class Series(NamedTuple):
    """A value (steps, rows, width), and what its rows are to be multiplied by, and then added, to be what is read, of a
    width of its own.
    """

    value: ir.Value
    width: int
    matrix: Array | None = None
    more: Array | None = None


def series(program: Program, made: NewNodes, read: Sequence[ir.Value]) -> Series:
    """Values (rows, width) of steps, in their order, as one."""
    columns = Columns(program)
    found, width = columns.of_values(read), _number(program.values[read[0].name or ""].shape[-1])
    if found is not None and _is_of_one(found):
        return _taken(program, made, found, width)
    row = columns.beside_each_other(made, [read])[0]
    return Series(made.reshaped(row.value, [len(read), -1, width]), width)


def _is_of_one(found: Placed) -> bool:
    """Whether values are places of one whose other axes are those of rows, if there are any, and of what these have."""
    return (
        len(found.of) == 1 and found.axis is not None and found.type.rank in (2, 3) and found.axis < found.type.rank - 1
    )


def _taken(program: Program, made: NewNodes, found: Placed, width: int) -> Series:
    """Places of a value, or of what it is a product of: then all are multiplied where they are read."""
    (whole,) = found.of.values()
    value, matrix, more = before_layer(program, whole)
    if found.axis == 1:
        value = made.transposed(value, [1, 0, 2])
    numbers = [place.number for place in found.places]
    if numbers != list(range(_number(found.type.shape[found.axis or 0]))):
        value = made.node("Gather", [value, made.integers(numbers)], [ir.AttrInt64("axis", 0)])
    if found.type.rank == 2:
        value = made.reshaped(value, [len(numbers), -1, width if matrix is None else len(matrix)])
    return Series(value, width, matrix, more)


def before_layer(program: Program, value: ir.Value) -> tuple[ir.Value, Array | None, Array | None]:
    """What a layer reads that gives a value, which only steps are taken of, its matrix and what it adds."""
    node, more = value.producer(), None
    users = [user for user, _ in value.uses()]
    if value.is_graph_output() or not all(is_a(user, "Gather", "Slice", "Split", "Scan") for user in users):
        return value, None, None
    inner = node
    if is_a(node, "Add"):
        row = next((v for v in node.inputs if data_of(program, v) is not None), None)
        other = next((v for v in node.inputs if v is not row), None)
        data, inner = data_of(program, row), None if other is None else other.producer()
        if data is None or other is None or data.size != (data.shape or (1,))[-1] or len(other.uses()) > 1:
            return value, None, None
        more = data.reshape(-1)
    if not is_a(inner, "MatMul") or inner.inputs[0] is None:
        return value, None, None
    matrix = data_of(program, inner.inputs[1])
    if matrix is None or matrix.ndim != 2 or matrix.shape[0] > matrix.shape[1]:  # a product of all would be larger
        return value, None, None
    if more is not None and more.size not in (1, matrix.shape[1]):
        return value, None, None
    return inner.inputs[0], matrix, np.broadcast_to(0 if more is None else more, matrix.shape[1:]).astype(matrix.dtype)


def _number(size: Dim) -> int:
    assert isinstance(size, int)
    return size
