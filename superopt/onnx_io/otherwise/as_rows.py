"""Models that keep features as columns: as rows, of which all are one product.

Cross layers that are written by hand multiply columns, `W·x` (DCN, Wang et al. 2021), and add, scale and bend these
element by element. A runtime multiplies the matrix by one vector after the other, and what is read of them is squeezed
and stacked again. `one_column.py` tells it of each product; here all that is computed of columns is, so that nothing is
in another shape between, and what computes several of them alike is seen to do so.
"""

from __future__ import annotations

from functools import partial

import onnx_ir as ir

from superopt.onnx_io.new_nodes import NewNodes
from superopt.onnx_io.operator_kinds import ELEMENTWISE
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import data_of
from superopt.onnx_io.replacing import Draft, Put
from superopt.onnx_io.said import is_a, listed
from superopt.onnx_io.skeleton import opset_of
from superopt.relations import equal_shapes, is_one

LEAST = 2
"""So many products with columns are worth it."""

LEAST_OPSET = 11
"""Before it, axes were not counted from the last one."""

_LEAST_RANK = 3
"""Of a single column nothing is gained."""


def as_rows(program: Program) -> dict[int, Put]:
    """How to compute rows, by the places of what computes columns beside products with matrices, or ends them."""
    nodes = list(program.model.graph)
    products = [node for node in nodes if _multiplies(program, node)]
    if len(products) < LEAST or opset_of(program.model) < LEAST_OPSET:
        return {}
    columns = {v for node in products for v in (node.inputs[1], *node.outputs)}
    beside, taken = [node for node in nodes if _is_elementwise(program, node)], {*products}
    while more := [node for node in beside if node not in taken and not columns.isdisjoint(_columns(program, node))]:
        taken.update(more)
        columns.update(v for node in more for v in _columns(program, node))
    ends = {node for node in nodes if _squeezes(program, node) and node.inputs[0] in columns}
    return {i: partial(_put, program) for i, node in enumerate(nodes) if node in taken or node in ends}


def _multiplies(program: Program, node: ir.Node) -> bool:
    """Whether a node multiplies a constant matrix by columns."""
    if not is_a(node, "MatMul") or not all((v.name or "") in program.values for v in node.inputs if v is not None):
        return False
    matrix, columns = (program.values[v.name or ""] for v in node.inputs if v is not None)
    given = [program.is_constant(v) for v in node.inputs if v is not None]
    is_column = columns.type.rank >= _LEAST_RANK and is_one(columns.shape[-1]) and not is_one(columns.shape[-2])
    return given == [True, False] and matrix.type.rank == 2 and is_column


def _is_elementwise(program: Program, node: ir.Node) -> bool:
    """Whether a node computes columns element by element."""
    result = program.term(node.outputs[0]) if is_a(node, *ELEMENTWISE) else None
    known = all(v is not None and (v.name or "") in program.values for v in node.inputs)
    return known and result is not None and result.type.rank >= _LEAST_RANK and is_one(result.shape[-1])


def _columns(program: Program, node: ir.Node) -> set[ir.Value]:
    """The columns that a node reads and gives, but for constants."""
    values = [v for v in (*node.inputs, *node.outputs) if v is not None and not program.is_constant(v)]
    shapes = {v: program.values[v.name or ""].shape for v in values}
    return {v for v, shape in shapes.items() if len(shape) >= _LEAST_RANK and not is_one(shape[-2])}


def _squeezes(program: Program, node: ir.Node) -> bool:
    """Whether a node gives what it reads without the last axis, of one."""
    known = [program.term(v) for v in (*node.inputs[:1], *node.outputs) if v is not None]
    if not is_a(node, "Squeeze", "Reshape") or len(known) != 2 or known[0] is None or known[1] is None:
        return False
    shape, less = known[0].shape, known[1].shape
    return len(shape) == len(less) + 1 and is_one(shape[-1]) and equal_shapes(shape[:-1], less)


def _put(program: Program, draft: Draft, node: ir.Node) -> bool:
    """Compute rows, and columns of these where something else reads them."""
    made = draft.nodes("rows")
    read = [v for v in node.inputs if v is not None]
    if node.op_type in ("Squeeze", "Reshape"):
        result = _row(program, made, read[0])
    else:
        if node.op_type == "MatMul":
            turned = made.transposed(read[0], [1, 0])  # one for all that read it
            row = made.node("MatMul", [_row(program, made, read[1]), turned])
        else:
            row = made.node(node.op_type, [_row(program, made, v) for v in read], list(node.attributes.values()))
        result = made.over(row, "Unsqueeze", [-1])
    return draft.replace(node, made, [result])


def _row(program: Program, made: NewNodes, value: ir.Value) -> ir.Value:
    """A value without its last axis, of one."""
    known, node = program.values[value.name or ""], value.producer()
    if not known.type.rank:
        return value
    if program.is_constant(value) and (data := data_of(program, value)) is not None:
        return made.held(data.reshape(data.shape[:-1]))
    below = None if not is_a(node, "Unsqueeze", "Reshape") else node.inputs[0]
    if node is None or below is None:
        return made.over(value, "Squeeze", [-1])
    if node.op_type == "Unsqueeze" and listed(node, "axes") in ([-1], [known.type.rank - 1]):
        return below
    less = program.term(below)
    if less is not None and equal_shapes(less.shape, known.shape[:-1]):
        return below
    return made.over(value, "Squeeze", [-1])
