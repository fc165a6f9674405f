"""Models that are forests of soft decisions: all trees at once, level by level.

A tree sends a row to the left with a chance and to the right with what is left of it, and weighs what is at its leaves
by the chances of their paths (Kontschieder et al. 2015). Scripts compute the paths of each tree by themselves, in rows
of two, or gather the chances of each path. Here the places of one level of all trees stand beside each other, so that
each level is two products in long rows, and the leaves of all trees are one matrix. What a place is is told by what is
multiplied there (`literals.py`), however that is spelled.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from superopt.arithmetic.carrier import Array
from superopt.onnx_io.order import is_read_once
from superopt.onnx_io.otherwise.forests.literals import Products
from superopt.onnx_io.otherwise.forests.merged_layers import merged
from superopt.onnx_io.otherwise.forests.places import UnreadError
from superopt.onnx_io.otherwise.forests.trees import Tree, apart, tree_of
from superopt.onnx_io.otherwise.networks.columns import FLOATS
from superopt.onnx_io.otherwise.networks.ends import ends_of
from superopt.onnx_io.otherwise.networks.stacked_ends import stacked_ends
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import data_of
from superopt.onnx_io.replacing import Draft, Put
from superopt.onnx_io.said import is_a, is_scaled, number, text
from superopt.onnx_io.skeleton import opset_of
from superopt.relations import are_equal

LEAST_OPSET = 13
"""Before it, a Split told its sizes otherwise."""

FEWEST_FOR_LEVELS = 3
"""So many values for each level that are computed otherwise are worth it: so many are here."""


class Forest(NamedTuple):
    """What all trees read, by which weights each of their chances is made, and the trees."""

    rows: ir.Value
    weights: Array
    added: Array
    trees: list[Tree]
    column: dict[tuple[str, int], int]


def forests(program: Program) -> dict[int, Put]:
    """How to compute all trees of a forest at once, by the places of what adds up what these give."""
    if opset_of(program.model) < LEAST_OPSET or not any(is_a(node, "Sigmoid") for node in program.model.graph):
        return {}
    unread = set[str]()
    found = {i: node for i, node in enumerate(program.model.graph) if _forest(program, node, unread) is not None}
    inner = {v.producer() for node in found.values() for v in _added(program, node) or () if v.producer() is not node}
    return {i: partial(_put, program) for i, node in found.items() if node not in inner}


def _forest(program: Program, node: ir.Node, unread: set[str]) -> Forest | None:
    """The trees whose results a node adds up, or multiplies the chances of by what is at the leaves; values that are
    none of such are noted as `unread`.
    """
    values = _added(program, node)
    if values is None:
        return None
    trees, products = list[Tree](), Products(program, unread)
    try:
        for value in values:
            trees += _trees(program, products, value)
    except UnreadError:
        return None
    if not trees or len({(len(t.levels), t.leaves.shape) for t in trees}) > 1 or len(trees[0].levels) < 2:
        return None
    if products.count < FEWEST_FOR_LEVELS * len(trees[0].levels):
        return None
    found = _of_the_same(program, products, trees)
    known = program.term(node.outputs[0])
    rows = None if found is None else program.term(found.rows)
    if known is None or rows is None or not are_equal(known.shape[0], rows.shape[0]):  # all have as many rows
        return None
    return found if known.type.dtype in FLOATS else None


def _added(program: Program, node: ir.Node) -> Sequence[ir.Value] | None:
    """What a node adds up, each of which nothing else reads; the value that it gives where that is a product itself."""
    if is_a(node, "MatMul", "Gemm", "Einsum"):
        return node.outputs
    ends = ends_of(node) if is_a(node, "Add") else []
    if is_a(node, "ReduceSum"):
        ends = [one for one in stacked_ends(program, node) if one.weighed is None]
    values = ends[0].values if ends else ()
    given = list(filter(is_read_once, values))
    return given if len(given) == len(values) > 1 else None


def _trees(program: Program, products: Products, value: ir.Value) -> list[Tree]:
    """The trees whose leaves make a value. Raises `UnreadError`."""
    node = value.producer()
    if not is_a(node, "MatMul", "Gemm", "Einsum") or node.inputs[0] is None:
        raise UnreadError
    given, is_read_else = node.inputs[1], len(node.inputs[0].uses()) > 1
    if given is None or not program.is_constant(given) or is_read_else:
        raise UnreadError
    places = products.of(node.inputs[0])  # before weights are read, which may be large
    leaves = _leaves(program, node, program.values[node.inputs[0].name or ""].type.rank)
    if places.rows != 0:
        raise UnreadError
    found = [products.literals(i) for i in places.ids.ravel().tolist()]
    every = leaves.reshape(len(found), -1)
    return [tree_of([(found[i], every[i]) for i in several]) for several in apart(found)]


def _leaves(program: Program, node: ir.Node, rank: int) -> Array:
    """What is at the leaves that a node multiplies by paths of a rank, along all axes but the last. Raises
    `UnreadError`.
    """
    leaves = data_of(program, node.inputs[1])
    told = text(node, "equation").replace(" ", "")
    fits = _is_product(told) if told else rank == 2
    if leaves is None or leaves.ndim < 2 or leaves.ndim != rank or not fits:
        raise UnreadError
    if not is_a(node, "Gemm"):
        return leaves
    if is_scaled(node) or number(node, "transA", 0) or len(node.inputs) > 2:
        raise UnreadError
    return leaves.T if number(node, "transB", 0) else leaves


def _is_product(equation: str) -> bool:
    """Whether an Einsum sums up all axes of rows but the first with those of a second value, but for its last."""
    left, _, result = equation.partition("->")
    one, _, other = left.partition(",")
    fits = len(one) > 1 and one[1:] == other[:-1] and result == one[:1] + other[-1:]
    return fits and len(set(one + other[-1:])) == len(one) + 1


def _of_the_same(program: Program, products: Products, trees: list[Tree]) -> Forest | None:
    """Trees whose chances are all made of the same rows by linear layers."""
    names = dict.fromkeys(x.of for tree in trees for level in tree.levels for x in level)
    layers = {name: merged(program, products.sources[name]) for name in names}
    found = {name: layer for name, layer in layers.items() if layer is not None}
    if len(found) < len(names) or len({layer.rows for layer in found.values()}) > 1:
        return None
    column, beside = dict[tuple[str, int], int](), list(found.values())
    for name, layer in found.items():
        column.update({(name, i): len(column) + i for i in range(layer.matrix.shape[1])})
    added = [np.zeros(x.matrix.shape[1], x.matrix.dtype) if x.added is None else x.added for x in beside]
    return Forest(beside[0].rows, np.concatenate([x.matrix for x in beside], 1), np.concatenate(added), trees, column)


def _put(program: Program, draft: Draft, node: ir.Node) -> bool:
    """Compute the paths of all trees level by level, and what they give as one product."""
    found = _forest(program, node, set())
    if found is None:  # what another one changed
        return False
    made, (rows, weights, added, trees, column) = draft.nodes("forest"), found
    levels = [[t.levels[n][i] for i in range(2**n) for t in trees] for n in range(len(trees[0].levels))]
    order = [column[x.of, x.column] for level in levels for x in level]
    product = made.node("MatMul", [rows, made.held(np.ascontiguousarray(weights[:, order]))])
    chances = made.node("Sigmoid", [made.node("Add", [product, made.held(added[order])])])
    left = made.node("Sub", [made.held(np.ones((1, 1), weights.dtype)), chances])
    sizes, along = made.integers([len(level) for level in levels]), [ir.AttrInt64("axis", 1)]
    ones, others = (made.several("Split", [v, sizes], along, len(levels)) for v in (chances, left))
    paths: ir.Value | None = None
    for one, other in zip(ones, others, strict=True):
        both = [one, other] if paths is None else [made.node("Mul", [paths, v]) for v in (one, other)]
        paths = made.node("Concat", both, along)
    assert paths is not None
    leaves = np.stack([t.leaves for t in trees], 1)
    result = made.node("MatMul", [paths, made.held(leaves.reshape(-1, leaves.shape[-1]))])
    return draft.replace(node, made, [result])
