"""Layers that multiply rows by constant matrices: what they have alike, of which each step of a series has its own, and
by which constants they compute.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from superopt.arithmetic.carrier import Array
from superopt.dim import Dim
from superopt.onnx_io.new_nodes import NewNodes
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import data_of
from superopt.onnx_io.said import is_a, is_scaled, number
from superopt.relations import is_one
from superopt.substitution import elements

PRODUCTS = ("Gemm", "MatMul")
"""What multiplies matrices."""

LEAST_STEPS, MOST_ROWS = 4, 32
"""So many steps are multiplied at once, of which each has so many rows: the matrix of larger ones is read seldom."""


def is_linear(program: Program, node: ir.Node, rank: int) -> bool:
    """Whether a node multiplies rows, in a tensor of this rank, by a constant matrix, and adds one row at most."""
    if not is_a(node, *PRODUCTS) or node.inputs[0] is None:
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
        matrix = made.transposed(matrix, [1, 0])
    whole = made.node("MatMul", [x, matrix])
    for row in bias:
        whole = whole if row is None else made.node("Add", [whole, row])
    return whole


class Layer(NamedTuple):
    """Rows that are multiplied by a matrix, what is added to each, if anything, and the nodes that do so."""

    rows: ir.Value
    matrix: Array
    added: Array | None
    nodes: tuple[ir.Node, ...]


def layer_of(program: Program, value: ir.Value) -> Layer | None:
    """The layer that gives a matrix of rows; None of what is something else."""
    node = value.producer()
    if not is_a(node, "Add"):
        return None if node is None else _product(program, node)
    for product, row in (node.inputs, node.inputs[::-1]):
        is_held = program.is_constant(row)
        found = layer_of(program, product) if is_held and product is not None else None
        added = None if found is None else _repeated(data_of(program, row), found.matrix.shape[1])
        if found is not None and added is not None:
            more = added if found.added is None else found.added + added
            return found._replace(added=more, nodes=(*found.nodes, node))
    return None


def _product(program: Program, node: ir.Node) -> Layer | None:
    """What a single node multiplies and adds."""
    rows = node.inputs[0] if node.inputs else None
    known = program.term(rows)
    if rows is None or known is None or known.type.rank != 2 or not is_linear(program, node, 2):
        return None
    matrix, *others = (data_of(program, v) for v in node.inputs[1:] if v is not None)
    if matrix is None:
        return None
    matrix = matrix.T if number(node, "transB", 0) else matrix
    added = _repeated(others[0], matrix.shape[1]) if others else None
    return Layer(rows, matrix, added, (node,)) if added is not None or not others else None


def _repeated(data: Array | None, width: int) -> Array | None:
    """The row that a constant is which is added to all rows of so many numbers; None of others."""
    is_row = data is not None and data.ndim < 3 and data.size in (1, *data.shape[-1:]) and data.size in (1, width)
    return np.broadcast_to(data.reshape(-1), width) if data is not None and is_row else None
