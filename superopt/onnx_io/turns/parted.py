"""Products of a turn's own row joined with what it knows, each multiplied by its part of the matrix.

`W·[x, h]` is what a recurrent cell of many a script computes; `V·x + U·h` is of a row alone in one product.
"""

from __future__ import annotations

from typing import NamedTuple

import onnx_ir as ir

from superopt.onnx_io.at_once.all_turns import AllTurns
from superopt.onnx_io.at_once.rows import Row
from superopt.onnx_io.new_nodes import NewNodes
from superopt.onnx_io.said import concat_axis, is_a, is_scaled, number
from superopt.onnx_io.surgery import let_go

_END = 2**31 - 1
"""Where a slice ends that goes to the end."""

_SLICED = 10
"""Since this opset slices take their bounds as inputs."""


class Parted(NamedTuple):
    """A node of a body that multiplies a turn's own row, and the parts of the matrix outside of it."""

    step: ir.Node
    matrices: tuple[ir.Value, ir.Value]


class _Join(NamedTuple):
    """A turn's own row, what it is joined with in what node, and what both are multiplied by."""

    own: ir.Value
    width: int
    rest: list[ir.Value]
    is_first: bool
    node: ir.Node
    matrix: Row


def parted(turns: AllTurns, body: ir.Graph, node: ir.Node, taken: set[str]) -> Parted | None:
    """Put in the place of a node of a body that multiplies a turn's own row, and what it is joined with, by a matrix
    that is the same in all turns, a product of each: that of the row is computed of all rows at once. None, and nothing
    is changed, where it is no such node. The row is the first or the last that is joined.
    """
    join = _joined(turns, node)
    if join is None:
        return None
    axis, width = number(node, "transB", 0), join.width
    bounds = ((0, width), (width, _END)) if join.is_first else ((-width, _END), (0, -width))
    mine, others = (_slice(turns, join.matrix, begin, end, axis) for begin, end in bounds)
    turns.rows[mine] = Row(mine, tuple(width if a == axis else d for a, d in enumerate(join.matrix.shape)), None)
    made, said = NewNodes("parted", taken, turns.made.opset), list(node.attributes.values())
    step = made.node(node.op_type, [join.own, mine, *(v for v in node.inputs[2:] if v is not None)], said)
    if not turns.take(first := made.nodes[0]):  # what is added to it may be no row's
        let_go(first)
        return None
    rest = join.rest
    beside = made.joined(rest, concat_axis(join.node))
    if node.op_type == "Gemm":
        whole = made.node("Gemm", [beside, others, step], said)
    else:
        whole = made.node("Add", [made.node("MatMul", [beside, others]), step])
    body.insert_before(node, made.nodes)
    old = node.outputs[0]
    whole.name, whole.type, step.type = old.name, old.type, old.type
    old.replace_all_uses_with(whole, replace_graph_outputs=True)
    body.remove(node, safe=True)
    return Parted(first, (mine, others))


def _joined(turns: AllTurns, node: ir.Node) -> _Join | None:
    """What a node multiplies of a turn's own row; None where it is nothing, or not of a known width."""
    join = node.inputs[0].producer() if node.inputs[:1] and node.inputs[0] is not None else None
    if not is_a(join, "Concat") or join.outputs[0] in turns.rows:
        return None
    parts = [v for v in join.inputs if v is not None]
    is_first = _own(turns, parts[0]) is not None
    own, rest = (parts[0], parts[1:]) if is_first else (parts[-1], parts[:-1])
    row, matrix = _own(turns, own), _matrix(turns, node)
    if row is None or matrix is None or concat_axis(join) not in (-1, len(row.shape) - 1):
        return None
    width = row.shape[-1]
    if not rest or not isinstance(width, int) or width == 0:  # of a width of 0 the rest's slice would be nothing
        return None
    return _Join(own, width, rest, is_first, join, matrix)


def _own(turns: AllTurns, value: ir.Value) -> Row | None:
    """A value that is of a turn's own row alone."""
    row = turns.rows.get(value)
    return row if row is not None and row.turns is not None and row.shape else None


def _matrix(turns: AllTurns, node: ir.Node) -> Row | None:
    """What a node multiplies matrices by, which are scaled by nothing: a matrix that is the same in all turns."""
    if not is_a(node, "Gemm", "MatMul") or turns.made.opset < _SLICED:
        return None
    matrix = turns.row(node.inputs[1])
    known = matrix is not None and matrix.turns is None and len(matrix.shape) == 2
    return matrix if known and not is_scaled(node) and not number(node, "transA", 0) else None


def _slice(turns: AllTurns, matrix: Row, begin: int, end: int, axis: int) -> ir.Value:
    """A part of a matrix, outside of the turns."""
    return turns.made.sliced(matrix.value, begin, end, axis)
