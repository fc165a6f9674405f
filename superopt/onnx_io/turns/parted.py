"""Products of a turn's own row joined with what it knows, each multiplied by its part of the matrix.

`W·[x, h]` is what a recurrent cell of many a script computes; `V·x + U·h` is of a row alone in one product.
"""

from __future__ import annotations

from typing import NamedTuple

import onnx_ir as ir

from superopt.onnx_io.new_nodes import NewNodes
from superopt.onnx_io.skeleton import ONNX_DOMAIN
from superopt.onnx_io.turns.all_turns import AllTurns
from superopt.onnx_io.turns.forms import is_scaled
from superopt.onnx_io.turns.rows import Row

_END = 2**31 - 1
"""Where a slice ends that goes to the end."""

_SLICED = 10
"""Since this opset slices take their bounds as inputs."""


class Parted(NamedTuple):
    """A node of a body that multiplies a turn's own row, and the parts of the matrix outside of it."""

    step: ir.Node
    matrices: tuple[ir.Value, ir.Value]


def parted(turns: AllTurns, body: ir.Graph, node: ir.Node, taken: set[str]) -> Parted | None:
    """Multiply a turn's own row apart from what it is joined with, where a node of a body multiplies both by a matrix
    that is the same in all turns, in place; None where it does not. The row is the first or the last that is joined.
    """
    join = node.inputs[0].producer() if node.inputs[:1] and node.inputs[0] is not None else None
    if join is None or join.op_type != "Concat" or join.domain not in ONNX_DOMAIN or join.outputs[0] in turns.rows:
        return None
    parts = [v for v in join.inputs if v is not None]
    is_first = _own(turns, parts[0]) is not None
    own, rest = (parts[0], parts[1:]) if is_first else (parts[-1], parts[:-1])
    row, matrix = _own(turns, own), _matrix(turns, node)
    if row is None or matrix is None or join.attributes["axis"].as_int() not in (-1, len(row.shape) - 1):
        return None
    if not rest or not isinstance(width := row.shape[-1], int):
        return None
    axis = 1 if "transB" in node.attributes and node.attributes["transB"].as_int() else 0
    bounds = ((0, width), (width, _END)) if is_first else ((-width, _END), (0, -width))
    mine, others = (_slice(turns, matrix, begin, end, axis) for begin, end in bounds)
    turns.rows[mine] = Row(mine, tuple(width if a == axis else d for a, d in enumerate(matrix.shape)), None)
    made = NewNodes("parted", taken)
    beside = rest[0] if len(rest) == 1 else made.node("Concat", rest, list(join.attributes.values()))
    said = list(node.attributes.values())
    step = made.node(node.op_type, [own, mine, *(v for v in node.inputs[2:] if v is not None)], said)
    if node.op_type == "Gemm":
        whole = made.node("Gemm", [beside, others, step], said)
    else:
        whole = made.node("Add", [made.node("MatMul", [beside, others]), step])
    body.insert_before(node, made.nodes)
    old, first = node.outputs[0], step.producer()
    assert first is not None
    whole.name, whole.type, step.type = old.name, old.type, old.type
    old.replace_all_uses_with(whole, replace_graph_outputs=True)
    body.remove(node, safe=True)
    return Parted(first, (mine, others))


def _own(turns: AllTurns, value: ir.Value) -> Row | None:
    """A value that is of a turn's own row alone."""
    row = turns.rows.get(value)
    return row if row is not None and row.turns is not None and row.shape else None


def _matrix(turns: AllTurns, node: ir.Node) -> Row | None:
    """What a node multiplies matrices by, which are scaled by nothing: a matrix that is the same in all turns."""
    if node.op_type not in ("Gemm", "MatMul") or node.domain not in ONNX_DOMAIN or turns.made.opset < _SLICED:
        return None
    turned = "transA" in node.attributes and node.attributes["transA"].as_int() != 0
    matrix = turns.row(node.inputs[1])
    known = matrix is not None and matrix.turns is None and len(matrix.shape) == 2
    return matrix if known and not is_scaled(node) and not turned else None


def _slice(turns: AllTurns, matrix: Row, begin: int, end: int, axis: int) -> ir.Value:
    """A part of a matrix, outside of the turns."""
    bounds = [turns.made.integers([n]) for n in (begin, end, axis)]
    return turns.made.node("Slice", [matrix.value, *bounds])
