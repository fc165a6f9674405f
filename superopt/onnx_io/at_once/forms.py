"""What computes of rows that each turn of a loop has the same of all at once: they stand along one axis in front.

Each form is right whatever the numbers are, and fails for no number of rows, also none, if a turn does not. Of what is
the same in all turns it fails where a turn would have failed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import onnx_ir as ir

from superopt.onnx_io.at_once.rows import Nodes, Row, aligned
from superopt.onnx_io.operator_kinds import ELEMENTWISE, REDUCES
from superopt.onnx_io.said import concat_axis, is_scaled, listed, number, permuted
from superopt.relations import are_equal, common

Form: TypeAlias = Callable[[Nodes, ir.Node, Sequence[Row]], "Sequence[Row] | None"]
"""Makes, of a node and the rows that it reads, those that it gives; None where that is not known to be right."""


def copied(nodes: Nodes, node: ir.Node, rows: Sequence[Row]) -> Sequence[Row] | None:
    """Rows as they are."""
    return rows


def elementwise(nodes: Nodes, node: ir.Node, rows: Sequence[Row]) -> Sequence[Row] | None:
    """What broadcasts does so behind the axis of turns."""
    return one_of(_broadcast(nodes, node.op_type, rows, list(node.attributes.values())))


def reduced(nodes: Nodes, node: ir.Node, rows: Sequence[Row]) -> Sequence[Row] | None:
    """What is reduced in each turn, along axes that are known."""
    row, rank, told = rows[0], len(rows[0].shape), listed(node, "axes")
    if row.turns is None or not told or any(not -rank <= a < rank for a in told):
        return None
    axes, kept = sorted(a % rank for a in told), number(node, "keepdims", 1)
    shape = [1 if a in axes else d for a, d in enumerate(row.shape) if kept or a not in axes]
    new = nodes.over(row.value, node.op_type, [a + 1 for a in axes], [ir.AttrInt64("keepdims", kept)])
    return [Row(new, tuple(shape), row.turns)]


def product(nodes: Nodes, node: ir.Node, rows: Sequence[Row]) -> Sequence[Row] | None:
    """The product of rows with a matrix that is the same in all turns: a larger product, as weights are read once."""
    return one_of(_times(nodes, *rows))


def linear(nodes: Nodes, node: ir.Node, rows: Sequence[Row]) -> Sequence[Row] | None:
    """The same of matrices that were to be scaled by nothing, and what is added to it."""
    left, right, *bias = rows
    if is_scaled(node) or number(node, "transA", 0) or right.turns is not None:
        return None
    if len(left.shape) != 2 or len(right.shape) != 2:
        return None
    if number(node, "transB", 0):
        turned = nodes.transposed(right.value, [1, 0])
        right = Row(turned, right.shape[::-1], None)
    made = _times(nodes, left, right)
    if made is not None and bias:  # which is broadcast to the product, and never the other way
        shape, (added,) = made.shape, bias
        made = _broadcast(nodes, "Add", [made, added])
        made = made if made is not None and all(map(are_equal, made.shape, shape)) else None
    return one_of(made)


def parts(nodes: Nodes, node: ir.Node, rows: Sequence[Row]) -> Sequence[Row] | None:
    """Rows that are cut along an axis into parts of known sizes."""
    row, axis, count = rows[0], number(node, "axis", 0), len(node.outputs)
    rank, sizes = len(row.shape), listed(node, "split")
    if not -rank <= axis < rank or sizes is None:
        return None
    size, axis = row.shape[axis], axis % rank
    if not sizes and isinstance(size, int) and size % count == 0:
        sizes = [size // count] * count
    if len(sizes) != count or not are_equal(size, sum(sizes)):
        return None
    values = nodes.parts(row.value, sizes, axis + 1 if row.turns is not None else axis)
    return [
        Row(value, tuple(part if a == axis else d for a, d in enumerate(row.shape)), row.turns)
        for value, part in zip(values, sizes, strict=True)
    ]


def joined(nodes: Nodes, node: ir.Node, rows: Sequence[Row]) -> Sequence[Row] | None:
    """Rows side by side, of which each turn has its own."""
    first, axis = rows[0], concat_axis(node)
    rank = len(first.shape)
    if any(row.turns is None or len(row.shape) != rank for row in rows) or not -rank <= axis < rank:
        return None
    axis %= rank
    others = [[d for a, d in enumerate(row.shape) if a != axis] for row in rows]
    if not all(are_equal(d, e) for other in others for d, e in zip(other, others[0], strict=True)):
        return None
    size = sum((row.shape[axis] for row in rows[1:]), first.shape[axis])
    value = nodes.joined([row.value for row in rows], axis + 1)
    return [Row(value, tuple(size if a == axis else d for a, d in enumerate(first.shape)), first.turns)]


def looked_up(nodes: Nodes, node: ir.Node, rows: Sequence[Row]) -> Sequence[Row] | None:
    """What numbers of rows choose from a table that is the same in all turns: tokens their embeddings."""
    table, at = rows
    if number(node, "axis", 0) or table.turns is not None or at.turns is None or not table.shape:
        return None
    return [Row(nodes.node("Gather", [table.value, at.value]), (*at.shape, *table.shape[1:]), at.turns)]


def turned(nodes: Nodes, node: ir.Node, rows: Sequence[Row]) -> Sequence[Row] | None:
    """Rows whose axes are in another order."""
    (row,) = rows
    rank = len(row.shape)
    order = permuted(node, rank)
    if sorted(order) != list(range(rank)):
        return None
    behind = order if row.turns is None else [0, *(a + 1 for a in order)]
    new = nodes.transposed(row.value, behind)
    return [Row(new, tuple(row.shape[a] for a in order), row.turns)]


def along(nodes: Nodes, node: ir.Node, rows: Sequence[Row]) -> Sequence[Row] | None:
    """Shares along an axis. Before opset 13 they are of all axes from that one on."""
    (row,) = rows
    rank, axis = len(row.shape), number(node, "axis", -1 if nodes.opset >= 13 else 1)
    if row.turns is None or not -rank <= axis < rank or (nodes.opset < 13 and axis % rank != rank - 1):
        return None
    new = nodes.node(node.op_type, [row.value], [ir.AttrInt64("axis", axis % rank + 1)])
    return [Row(new, row.shape, row.turns)]


def _times(nodes: Nodes, left: Row, right: Row) -> Row | None:
    if not left.shape or len(right.shape) != 2 or right.turns is not None:
        return None
    if not are_equal(left.shape[-1], right.shape[0]):
        return None
    return Row(nodes.node("MatMul", [left.value, right.value]), (*left.shape[:-1], right.shape[1]), left.turns)


def _broadcast(nodes: Nodes, op_type: str, rows: Sequence[Row], attributes: Sequence[ir.Attr] = ()) -> Row | None:
    rank = max(len(r.shape) for r in rows)
    shape = [common([r.shape[-a] for r in rows if len(r.shape) >= a]) for a in range(rank, 0, -1)]
    if None in shape:
        return None
    turns = next((r.turns for r in rows if r.turns is not None), None)
    inputs = [r.value if r.turns is None else aligned(nodes, r, rank) for r in rows]
    return Row(nodes.node(op_type, inputs, attributes), tuple(d for d in shape if d is not None), turns)


def one_of(made: Row | None) -> Sequence[Row] | None:
    """What a node of one output gives."""
    return None if made is None else [made]


FORMS: Mapping[str, Form] = {
    "Cast": elementwise,
    "Concat": joined,
    "Gather": looked_up,
    "Gemm": linear,
    "Identity": copied,
    "LogSoftmax": along,
    "MatMul": product,
    "Softmax": along,
    "Split": parts,
    "Transpose": turned,
    **dict.fromkeys(REDUCES, reduced),
    **dict.fromkeys(ELEMENTWISE, elementwise),
}
"""By ONNX's operators."""
