"""Layers that multiply rows by constant matrices, of which each step of a series has its own: what they have alike."""

from __future__ import annotations

import onnx_ir as ir

from superopt.dim import Dim
from superopt.onnx_io.new_nodes import NewNodes
from superopt.onnx_io.program import Program
from superopt.onnx_io.said import number
from superopt.onnx_io.skeleton import ONNX_DOMAIN
from superopt.onnx_io.turns.forms import is_scaled
from superopt.onnx_io.turns.rows import elements
from superopt.relations import is_one

LEAST_STEPS, MOST_ROWS = 4, 32
"""So many steps are multiplied at once, of which each has so many rows: the matrix of larger ones is read seldom."""


def is_linear(program: Program, node: ir.Node, rank: int) -> bool:
    """Whether a node multiplies rows, in a tensor of this rank, by a constant matrix, and adds one row at most."""
    if node.op_type not in ("Gemm", "MatMul") or node.domain not in ONNX_DOMAIN or node.inputs[0] is None:
        return False
    names = [v.name or "" for v in node.inputs[1:] if v is not None]
    if any(name not in program.constants or name not in program.values for name in names):
        return False
    matrix, *bias = (program.values[name] for name in names)
    is_row = all(is_one(d) for b in bias for d in b.shape[:-1])
    return rank > 1 and matrix.type.rank == 2 and is_row and not is_scaled(node) and not number(node, "transA", 0)


def layer(node: ir.Node) -> object:
    """What two such nodes have alike that are the same layer."""
    return node.op_type, tuple(node.inputs[1:]), str(sorted((a.name, a.value) for a in node.attributes.values()))


def are_few(rows: list[Dim]) -> bool:
    """Whether sizes are those of few rows, where each symbolic one is 1."""
    return elements(tuple(rows)) <= MOST_ROWS


def multiplied(made: NewNodes, node: ir.Node, x: ir.Value) -> ir.Value:
    """What a layer computes of other rows, in a tensor of any rank."""
    matrix, *bias = node.inputs[1:]
    assert matrix is not None
    if number(node, "transB", 0):
        matrix = made.node("Transpose", [matrix], [ir.AttrInt64s("perm", [1, 0])])
    whole = made.node("MatMul", [x, matrix])
    for row in bias:
        whole = whole if row is None else made.node("Add", [whole, row])
    return whole
