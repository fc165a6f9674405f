"""Layers of several values at once, each with weights of its own: along one more axis in front, as stacks of matrices.

What computes single elements and reduces is known already (`all_turns.py`); these are products, shares, norms, and what
chooses one place or gives an axis of one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx_ir as ir

from superopt.onnx_io.all_turns import AllTurns, Row, Way, broadcast, held_by, number


def _product(turns: AllTurns, _: ir.Node, rows: Sequence[Row]) -> Row | None:
    """A product of matrices, or of stacks of them."""
    return _multiplied(turns, rows[0], rows[1])


def _multiplied(turns: AllTurns, one: Row, other: Row) -> Row | None:
    rank = max(len(one.shape), len(other.shape))
    if min(len(one.shape), len(other.shape)) < 2:
        return None
    stacks = [broadcast([r.shape[-a] for r in (one, other) if len(r.shape) >= a]) for a in range(rank, 2, -1)]
    shape = (*(d for d in stacks if d is not None), one.shape[-2], other.shape[-1])
    inputs = [r.value if r.turns is None else turns.aligned(r, rank) for r in (one, other)]
    turned = one.turns if one.turns is not None else other.turns
    return Row(turns.new("MatMul", inputs, []), shape, turned) if len(shape) == rank else None


def _gemm(turns: AllTurns, node: ir.Node, rows: Sequence[Row]) -> Row | None:
    """A product of two matrices, each transposed or not, and what is added to it."""
    if any(name in node.attributes and node.attributes[name].as_float() != 1.0 for name in ("alpha", "beta")):
        return None
    asked = zip(rows[:2], ("transA", "transB"), strict=True)
    one, other = (_transposed(turns, row) if number(node, name, 0) else row for row, name in asked)
    made = _multiplied(turns, one, other)
    return made if made is None or len(rows) < 3 else _combined(turns, "Add", made, rows[2])


def _transposed(turns: AllTurns, row: Row) -> Row:
    order = (1, 0) if row.turns is None else (0, 2, 1)
    return Row(turns.new("Transpose", [row.value], [ir.AttrInt64s("perm", order)]), row.shape[::-1], row.turns)


def _combined(turns: AllTurns, op_type: str, one: Row, other: Row) -> Row:
    """A row of all turns and what has at most its shape, element by element."""
    more = other.value if other.turns is None else turns.aligned(other, len(one.shape))
    return Row(turns.new(op_type, [one.value, more], []), one.shape, one.turns)


def _shared(turns: AllTurns, node: ir.Node, rows: Sequence[Row]) -> Row | None:
    """Shares along the last axis."""
    row, rank = rows[0], len(rows[0].shape)
    if "axis" not in node.attributes or number(node, "axis", -1) not in (-1, rank - 1):  # the default was another once
        return None
    return Row(turns.new(node.op_type, [row.value], [ir.AttrInt64("axis", -1)]), row.shape, row.turns)


def _normalized(turns: AllTurns, node: ir.Node, rows: Sequence[Row]) -> Row | None:
    """Rows that are normalized, then scaled and shifted."""
    x, rank, scale = rows[0], len(rows[0].shape), held_by(rows[1].value)
    if x.turns is None or scale is None or number(node, "axis", -1) not in (-1, rank - 1) or len(rows[1].shape) != 1:
        return None
    ones = turns.new(
        "Constant", [], [ir.AttrTensor("value", ir.tensor(np.ones(scale.numpy().shape[-1:], scale.numpy().dtype)))]
    )
    others = [a for name, a in node.attributes.items() if name != "axis"]
    made = Row(turns.new(node.op_type, [x.value, ones], others), x.shape, x.turns)
    made = _combined(turns, "Mul", made, rows[1])
    return made if len(rows) < 3 else _combined(turns, "Add", made, rows[2])


def _standardized(turns: AllTurns, node: ir.Node, rows: Sequence[Row]) -> Row | None:
    """Rows each number of which is scaled and shifted by what was learned of its column."""
    x, scale, shift, mean, variance = rows
    trained = number(node, "training_mode", 0) or number(node, "spatial", 1) != 1
    if x.turns is None or len(x.shape) != 2 or trained or any(len(r.shape) != 1 for r in rows[1:]):
        return None
    given = node.attributes["epsilon"].as_float() if "epsilon" in node.attributes else 1e-5
    if (held := held_by(variance.value)) is None:
        return None
    least = turns.new("Constant", [], [ir.AttrTensor("value", ir.tensor(np.array(given, held.numpy().dtype)))])
    root = turns.new("Sqrt", [turns.new("Add", [variance.value, least], [])], [])
    several = variance.turns if scale.turns is None else scale.turns
    factor = Row(turns.new("Div", [scale.value, root], []), scale.shape, several)
    for op_type, row in (("Sub", mean), ("Mul", factor), ("Add", shift)):
        x = _combined(turns, op_type, x, row)
    return x


def _picked(turns: AllTurns, node: ir.Node, rows: Sequence[Row]) -> Row | None:
    """Places along an axis, the same of each value."""
    row, places = rows
    axis = number(node, "axis", 0) % len(row.shape) if row.shape else 0
    if row.turns is None or places.turns is not None or not row.shape:
        return None
    made = turns.new("Gather", [row.value, places.value], [ir.AttrInt64("axis", axis + 1)])
    return Row(made, (*row.shape[:axis], *places.shape, *row.shape[axis + 1 :]), row.turns)


def _unsqueezed(turns: AllTurns, node: ir.Node, rows: Sequence[Row]) -> Row | None:
    """Axes of one place."""
    told, row = node.attributes.get("axes"), rows[0]
    held = held_by(rows[1].value) if len(rows) > 1 else None
    listed = told.as_ints() if told is not None else held.numpy().tolist() if held is not None else ()
    rank = len(row.shape) + len(listed)
    axes, sizes = sorted(a % rank for a in listed), iter(row.shape)
    if row.turns is None or not axes:
        return None
    shape = tuple(1 if a in axes else next(sizes) for a in range(rank))
    return Row(turns.over(row.value, "Unsqueeze", [a + 1 for a in axes], 13), shape, row.turns)


LAYERS: Mapping[str, Way] = {
    "BatchNormalization": _standardized,
    "Gather": _picked,
    "Gemm": _gemm,
    "LayerNormalization": _normalized,
    "LogSoftmax": _shared,
    "MatMul": _product,
    "Softmax": _shared,
    "Unsqueeze": _unsqueezed,
}
"""By the operators that they are of."""
