"""Models that join what they compute of many pairs of few values: computed of all pairs at once.

Recommenders multiply embeddings of each two features, as field-aware machines do (Juan et al. 2016) or FiBiNET (Huang
et al. 2019): of 26 features there are 325 pairs, each of which a script takes from lists, multiplies and appends. All
first ones are places of one value, and all second ones, so it is two Gathers and one product. onnxruntime 1.32 takes
174 µs for a FiBiNET of 26 features of 16 numbers, and 58 where pairs are computed so.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import onnx_ir as ir

from superopt.dim import Shape
from superopt.onnx_io.operator_kinds import ELEMENTWISE
from superopt.onnx_io.otherwise.networks.alike import Alike, Twins
from superopt.onnx_io.otherwise.networks.columns import FLOATS, Columns, Placed, Wholes
from superopt.onnx_io.otherwise.networks.small import MOST_ALONE
from superopt.onnx_io.program import Program
from superopt.onnx_io.replacing import Draft, Put
from superopt.onnx_io.said import concat_axis, is_a, listed
from superopt.relations import equal_shapes, is_one
from superopt.substitution import elements

KINDS = ELEMENTWISE | {"Unsqueeze"}
"""What is computed of pairs, and the axis along which they are joined where they do not have it."""

FEWEST = 12
"""So many pairs are worth it."""


class _Pairs(NamedTuple):
    """What is computed of each, by which nodes of the first, along which axis that is joined, and whether it is given
    that axis last.
    """

    read: list[Alike]
    nodes: list[ir.Node]
    axis: int
    is_new: bool


def pairs(program: Program) -> dict[int, Put]:
    """How to compute what is joined of pairs at once, by the places of the joins."""
    joins = [(i, node) for i, node in enumerate(program.model.graph) if is_a(node, "Concat")]
    joins = [(i, node) for i, node in joins if len(node.inputs) >= FEWEST]
    columns = Columns(program)
    return {i: partial(_put, program, columns) for i, node in joins if _found(program, columns, node) is not None}


def _found(program: Program, columns: Columns, join: ir.Node) -> _Pairs | None:
    """What a node joins, where it is computed alike of places of few values; None of others."""
    parts, twins = tuple([v for v in join.inputs if v is not None]), Twins(KINDS)
    if not twins.follow(parts) or twins.is_mixed or twins.weights or not twins.read or not twins.alone([join]):
        return None
    known, nodes = program.term(join.outputs[0]), [node for node, *_ in twins.nodes]
    if known is None or not nodes or nodes[-1] is not parts[0].producer():
        return None
    axis = concat_axis(join) % known.type.rank
    new = [a % known.type.rank for a in listed(nodes.pop(), "axes") or []] if is_a(nodes[-1], "Unsqueeze") else []
    if new not in ([], [axis]) or not nodes or any(is_a(node, "Unsqueeze") for node in nodes):
        return None
    found, others = _Pairs(twins.read, nodes, axis, bool(new)), _without(known.shape, axis)
    of_one = others if new else (*others[:axis], 1, *others[axis:])
    are_few = all(_are_few(columns, row, axis, others) for row in twins.read)
    return found if are_few and _is_of(program, found, of_one) else None


def _is_of(program: Program, found: _Pairs, shape: Shape) -> bool:
    """Whether all that is computed of a pair has a shape, of few elements, and what all pairs read is one number."""
    own = {v for node in found.nodes for v in node.outputs} | {row[0] for row in found.read}
    every = {v for node in found.nodes for v in node.inputs if v is not None} - own
    known = [program.term(v) for v in own]
    numbers = [program.term(v) for v in every]
    return (
        elements(shape) <= MOST_ALONE  # as far as these are known
        and all(t is not None and t.type.dtype in FLOATS and equal_shapes(t.shape, shape) for t in known)
        and all(t is not None and t.type.rank <= len(shape) and all(map(is_one, t.shape)) for t in numbers)
    )


def _are_few(columns: Columns, row: Alike, axis: int, others: Shape) -> bool:
    """Whether values are places of few along an axis, whose other axes have these sizes, or few themselves."""
    placed = columns.of_values(row)
    if placed is None or not placed.are_few:
        return False
    return placed.axis is None or (placed.axis == axis and equal_shapes(_without(placed.type.shape, axis), others))


def _put(program: Program, columns: Columns, draft: Draft, join: ir.Node) -> bool:
    """Let what is joined be computed at once."""
    if (found := _found(program, columns, join)) is None:  # what another one changed
        return False
    made = draft.nodes("pairs")
    placed = [p for row in found.read if (p := columns.of_values(row)) is not None]
    along = ir.AttrInt64("axis", found.axis)

    def joined(values: Sequence[ir.Value], like: Placed) -> ir.Value:
        if like.axis is None and found.is_new:
            values = [made.over(v, "Unsqueeze", [found.axis]) for v in values]
        return made.joined(values, found.axis)

    wholes, now = Wholes(placed, joined), dict[ir.Value, ir.Value]()
    for row, p in zip(found.read, placed, strict=True):
        whole, numbers = wholes.of(p)
        now[row[0]] = whole if numbers is None else made.node("Gather", [whole, made.integers(numbers)], [along])
    for node in found.nodes:
        read = [now.get(v, v) for v in node.inputs if v is not None]
        now[node.outputs[0]] = made.node(node.op_type, read, list(node.attributes.values()))
    return draft.replace(join, made, [now[found.nodes[-1].outputs[0]]])


def _without(shape: Shape, axis: int) -> Shape:
    return (*shape[:axis], *shape[axis + 1 :])
