"""Models that take whole rows where they are told, and not one number after the other.

Detectors keep the boxes and the features of what is most likely an object (`gather` of torch, by which DETR's followers
do it; Zhao et al. 2023), and exporters repeat the number of the row for each of its elements: GatherElements. Where all
of a row is of the same row it is a Gather, or where rows are told for each of a batch a GatherND, which onnxruntime
1.32 copies row by row: of 8,400 rows of 256 numbers, 300 take 16 µs for 118.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import onnx_ir as ir

from superopt.dim import product
from superopt.onnx_io.new_nodes import NewNodes
from superopt.onnx_io.otherwise.places.repeats import Repeated, repeated, repeats
from superopt.onnx_io.program import Program
from superopt.onnx_io.replacing import Draft, Put, of_nodes
from superopt.onnx_io.said import is_a, number
from superopt.onnx_io.skeleton import opset_of
from superopt.relations import are_equal, equal_shapes
from superopt.term import Term

TYPES = ("float32", "float64", "int64")
"""Of what has these is known that runtimes take rows of it."""

BATCHED = 12
"""The opset from which on GatherND has axes of batches."""


def gathered(program: Program) -> dict[int, Put]:
    """How to take rows as rows, by the places of what does it one number after the other."""
    made = program.made if any(is_a(node, "GatherElements") for node in program.model.graph) else {}
    return of_nodes(program, lambda node: _put(program, made, node) if is_a(node, "GatherElements") else None)


def _put(program: Program, made: Mapping[str, Term], node: ir.Node) -> Put | None:
    """How to take rows of more than one number where a node takes whole ones."""
    x, indices = (program.term(v) for v in node.inputs)
    if x is None or indices is None or x.type.dtype not in TYPES or indices.type.rank != x.type.rank:
        return None
    axis = number(node, "axis", 0) % x.type.rank
    others = [(a, b) for i, (a, b) in enumerate(zip(x.shape, indices.shape, strict=True)) if i != axis]
    if are_equal(product(x.shape[axis + 1 :]), 1) or not all(are_equal(a, b) for a, b in others):
        return None
    if (numbers := repeated(program, made, node, 1, (axis,))) is not None:
        return partial(_take, numbers, axis)
    each = range(axis + 1)
    if opset_of(program.model) < BATCHED or (numbers := repeated(program, made, node, 1, each)) is None:
        return None
    source = repeats(node.inputs[1])
    told = program.term(source)
    is_leading = told is not None and equal_shapes(told.shape[: axis + 1], indices.shape[: axis + 1])
    return partial(_take_of_each, numbers, axis) if numbers.held is not None or is_leading else None


def _take(numbers: Repeated, axis: int, draft: Draft, node: ir.Node) -> bool:
    """Let the same rows be taken everywhere."""
    made = draft.nodes("rows")
    told = numbers.reshaped(made, node, (-1,))
    return _replace(draft, node, made, "Gather", told, ir.AttrInt64("axis", axis))


def _take_of_each(numbers: Repeated, axis: int, draft: Draft, node: ir.Node) -> bool:
    """Let rows be taken of each of what stands along the axes before."""
    made = draft.nodes("rows")
    told = numbers.reshaped(made, node, (*[0] * (axis + 1), 1))
    return _replace(draft, node, made, "GatherND", told, ir.AttrInt64("batch_dims", axis))


def _replace(draft: Draft, node: ir.Node, made: NewNodes, op_type: str, told: ir.Value, attribute: ir.Attr) -> bool:
    x = node.inputs[0]
    assert x is not None
    taken = made.node(op_type, [x, told], [attribute])
    return draft.replace(node, made, [taken])
