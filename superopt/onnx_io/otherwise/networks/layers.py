"""Layers of several values at once, each with weights of its own: along one more axis in front, as stacks of matrices.

What computes single elements and reduces is known already (`at_once/forms.py`); these are products, norms, and what
chooses one place or gives an axis of one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx_ir as ir

from superopt.onnx_io.at_once.forms import FORMS, Form, one_of
from superopt.onnx_io.at_once.rows import Nodes, Row, aligned
from superopt.onnx_io.otherwise.networks.image_layers import IMAGE_LAYERS
from superopt.onnx_io.said import held, is_scaled, listed, number, real
from superopt.relations import common, is_one


def _product(nodes: Nodes, node: ir.Node, rows: Sequence[Row]) -> Sequence[Row] | None:
    """A product of matrices, or of stacks of them."""
    return one_of(_multiplied(nodes, *rows))


def _multiplied(nodes: Nodes, one: Row, other: Row) -> Row | None:
    rank = max(len(one.shape), len(other.shape))
    if min(len(one.shape), len(other.shape)) < 2:
        return None
    if (
        one.turns is None
        and isinstance(other.turns, int)
        and rank == 2
        and all(isinstance(d, int) for d in other.shape)
    ):
        return _of_the_same(nodes, one, other, other.turns)
    stacks = [common([r.shape[-a] for r in (one, other) if len(r.shape) >= a]) for a in range(rank, 2, -1)]
    shape = (*(d for d in stacks if d is not None), one.shape[-2], other.shape[-1])
    inputs = [r.value if r.turns is None else aligned(nodes, r, rank) for r in (one, other)]
    turned = one.turns if one.turns is not None else other.turns
    kind = "Mul" if is_one(one.shape[-1]) else "MatMul"  # of columns and rows, each number times each
    return Row(nodes.node(kind, inputs), shape, turned) if len(shape) == rank else None


def _of_the_same(nodes: Nodes, one: Row, other: Row, turns: int) -> Row:
    """The same rows by several matrices, which are one beside each other."""
    inner, width = (d for d in other.shape if isinstance(d, int))
    beside = nodes.transposed(other.value, (1, 0, 2))
    matrix = nodes.reshaped(beside, [inner, turns * width])
    every, shape = nodes.node("MatMul", [one.value, matrix]), (one.shape[0], width)
    if is_one(one.shape[0]):
        return Row(nodes.reshaped(every, [turns, 1, width]), shape, turns)
    apart = nodes.reshaped(every, [-1, turns, width])
    return Row(nodes.transposed(apart, (1, 0, 2)), shape, turns)


def _gemm(nodes: Nodes, node: ir.Node, rows: Sequence[Row]) -> Sequence[Row] | None:
    """A product of two matrices, each transposed or not, and what is added to it."""
    if is_scaled(node):
        return None
    asked = zip(rows[:2], ("transA", "transB"), strict=True)
    one, other = (_transposed(nodes, row) if number(node, name, 0) else row for row, name in asked)
    made = _multiplied(nodes, one, other)
    return one_of(made if made is None or len(rows) < 3 else _combined(nodes, "Add", made, rows[2]))


def _transposed(nodes: Nodes, row: Row) -> Row:
    order = (1, 0) if row.turns is None else (0, 2, 1)
    return Row(nodes.transposed(row.value, order), row.shape[::-1], row.turns)


def _combined(nodes: Nodes, op_type: str, one: Row, other: Row) -> Row:
    """A row and what has at most its shape, element by element."""
    rank = len(one.shape)
    both = [row.value if row.turns is None else aligned(nodes, row, rank) for row in (one, other)]
    return Row(nodes.node(op_type, both), one.shape, other.turns if one.turns is None else one.turns)


def _normalized(nodes: Nodes, node: ir.Node, rows: Sequence[Row]) -> Sequence[Row] | None:
    """Rows that are normalized, then scaled and shifted."""
    x, rank, scale = rows[0], len(rows[0].shape), held(rows[1].value)
    if x.turns is None or scale is None or number(node, "axis", -1) not in (-1, rank - 1) or len(rows[1].shape) != 1:
        return None
    data = scale.numpy()
    ones = nodes.held(np.ones(data.shape[-1:], data.dtype))
    others = [a for name, a in node.attributes.items() if name != "axis"]
    made = Row(nodes.node(node.op_type, [x.value, ones], others), x.shape, x.turns)
    made = _combined(nodes, "Mul", made, rows[1])
    return [made if len(rows) < 3 else _combined(nodes, "Add", made, rows[2])]


def _standardized(nodes: Nodes, node: ir.Node, rows: Sequence[Row]) -> Sequence[Row] | None:
    """Rows each number of which is scaled and shifted by what was learned of its column."""
    x, scale, shift, mean, variance = rows
    trained = number(node, "training_mode", 0) or number(node, "spatial", 1) != 1
    if x.turns is None or len(x.shape) != 2 or trained or any(len(r.shape) != 1 for r in rows[1:]):
        return None
    given = real(node, "epsilon", 1e-5)
    if (data := held(variance.value)) is None:
        return None
    least = nodes.held(np.array(given, data.numpy().dtype))
    root = nodes.node("Sqrt", [nodes.node("Add", [variance.value, least])])
    several = variance.turns if scale.turns is None else scale.turns
    factor = Row(nodes.node("Div", [scale.value, root]), scale.shape, several)
    for op_type, row in (("Sub", mean), ("Mul", factor), ("Add", shift)):
        x = _combined(nodes, op_type, x, row)
    return [x]


def _picked(nodes: Nodes, node: ir.Node, rows: Sequence[Row]) -> Sequence[Row] | None:
    """Places along an axis, the same of each value."""
    row, places = rows
    axis = number(node, "axis", 0) % len(row.shape) if row.shape else 0
    if row.turns is None or places.turns is not None or not row.shape:
        return None
    made = nodes.node("Gather", [row.value, places.value], [ir.AttrInt64("axis", axis + 1)])
    return [Row(made, (*row.shape[:axis], *places.shape, *row.shape[axis + 1 :]), row.turns)]


def _unsqueezed(nodes: Nodes, node: ir.Node, rows: Sequence[Row]) -> Sequence[Row] | None:
    """Axes of one place."""
    told, row = listed(node, "axes") or [], rows[0]
    rank = len(row.shape) + len(told)
    axes, sizes = sorted(a % rank for a in told), iter(row.shape)
    if row.turns is None or not axes:
        return None
    shape = tuple(1 if a in axes else next(sizes) for a in range(rank))
    return [Row(nodes.over(row.value, "Unsqueeze", [a + 1 for a in axes]), shape, row.turns)]


LAYERS: Mapping[str, Form] = {
    **FORMS,
    **IMAGE_LAYERS,
    "BatchNormalization": _standardized,
    "Gather": _picked,
    "Gemm": _gemm,
    "LayerNormalization": _normalized,
    "MatMul": _product,
    "Unsqueeze": _unsqueezed,
}
"""By the operators that they are of."""
