"""Where networks that stand side by side end: what a node joins, or several add up."""

from __future__ import annotations

from itertools import groupby
from typing import NamedTuple

import onnx_ir as ir

from superopt.onnx_io.said import held
from superopt.onnx_io.skeleton import ONNX_DOMAIN

FEWEST = 2
"""So many networks are worth a look."""

MOST_NODES = 128
"""So many sums one above the other are looked at."""


class Ends(NamedTuple):
    """Values that are joined, or added up, the nodes that do so, and how many of what is joined are before them."""

    values: tuple[ir.Value, ...]
    nodes: tuple[ir.Node, ...]
    before: int = 0


def ends_of(node: ir.Node) -> list[Ends]:
    """What a node joins or, with sums below that it alone reads, adds up, and neighbours among what it joins that nodes
    of one kind give: a table's numbers may stand beside what networks make of its columns. None that are few.
    """
    if node.domain not in ONNX_DOMAIN or node.op_type not in ("Add", "Concat") or any(v is None for v in node.inputs):
        return []
    if node.op_type == "Add" and any(_goes_on(user) for user, _ in node.outputs[0].uses()):
        return []
    nodes, values = [node], [v for v in node.inputs if v is not None]
    while node.op_type == "Add" and (below := _sum(values[0])) is not None and len(nodes) < MOST_NODES:
        nodes.append(below)
        values[:1] = [v for v in below.inputs if v is not None]
    found = [Ends(tuple(values), tuple(nodes))]
    for _, run in groupby(enumerate(values if node.op_type == "Concat" else ()), key=lambda placed: _kind(placed[1])):
        (before, first), *others = run
        if others and len(others) + 1 < len(values):
            found.append(Ends((first, *(v for _, v in others)), (node,), before))
    return [ends for ends in found if len(ends.values) >= FEWEST]


def _kind(value: ir.Value) -> str:
    node = value.producer()
    return "" if node is None else node.op_type


def _goes_on(node: ir.Node) -> bool:
    """Whether it adds anything but a constant, as a bias of the whole."""
    return node.op_type == "Add" and not any(held(v) is not None for v in node.inputs)


def _sum(value: ir.Value) -> ir.Node | None:
    """The sum that a value is, if but one node reads it."""
    node = value.producer()
    one = node is not None and node.op_type == "Add" and node.domain in ONNX_DOMAIN and len(value.uses()) == 1
    return node if one and not value.is_graph_output() else None
