"""Where networks that stand side by side end: what a node joins, or several add up, or outputs of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

import onnx_ir as ir

from superopt.dim import Shape
from superopt.onnx_io.new_nodes import NewNodes
from superopt.onnx_io.order import is_read_once
from superopt.onnx_io.program import Program
from superopt.onnx_io.said import concat_axis, held, is_a
from superopt.onnx_io.surgery import replace_node

FEWEST = 2
"""So many networks are worth a look."""

MOST_NODES = 128
"""So many sums one above the other are looked at."""


class Ends(NamedTuple):
    """Values that are joined along an axis, or else added up, the nodes that do so, and how many of what is joined are
    before them. Outputs may be joined, and are no nodes' then. What is added up may be `weighed` by a number for each,
    along the last axis of a value, or by the same factor.
    """

    values: tuple[ir.Value, ...]
    nodes: tuple[ir.Node, ...]
    axis: int | None
    before: int = 0
    weighed: ir.Value | None = None
    factor: float = 1.0


def ends_of(node: ir.Node) -> list[Ends]:
    """What a node joins or, with sums below that it alone reads, adds up, and neighbours among what it joins that nodes
    of one kind give: a table's numbers may stand beside what networks make of its columns. None that are few.
    """
    if not is_a(node, "Add", "Concat") or any(v is None for v in node.inputs):
        return []
    if node.op_type == "Add" and any(_goes_on(user) for user, _ in node.outputs[0].uses()):
        return []
    nodes, values = [node], [v for v in node.inputs if v is not None]
    while node.op_type == "Add" and (below := _sum(values[0])) is not None and len(nodes) < MOST_NODES:
        nodes.append(below)
        values[:1] = [v for v in below.inputs if v is not None]
    axis = concat_axis(node) if node.op_type == "Concat" else None
    found = [Ends(tuple(values), tuple(nodes), axis)]
    for _, run in groupby(enumerate(values if node.op_type == "Concat" else ()), key=lambda placed: _kind(placed[1])):
        (before, first), *others = run
        if others and len(others) + 1 < len(values):
            found.append(Ends((first, *(v for _, v in others)), (node,), axis, before))
    return [ends for ends in found if len(ends.values) >= FEWEST]


def outputs_of(graph: ir.Graph) -> dict[ir.Node, Ends]:
    """Outputs of a graph that nodes of one kind give, and nothing reads, by the last of these."""
    given = dict[str, dict[ir.Node, ir.Value]]()
    for value in graph.outputs:
        node = value.producer()
        if node is not None and node.graph is graph and len(node.outputs) == 1 and not value.uses():
            given.setdefault(node.op_type, {})[node] = value
    several = [values for values in given.values() if len(values) >= FEWEST]
    places = {node: i for i, node in enumerate(graph)} if several else {}
    return {max(values, key=lambda node: places[node]): Ends(tuple(values.values()), (), -1) for values in several}


def ends_at(program: Program, node: ir.Node, outputs: Mapping[ir.Node, Ends]) -> list[Ends]:
    """What ends at a node: outputs of a graph the last of which it gives, or else what it joins or adds up; nothing at
    constants and sizes, which no networks compute.
    """
    if all(program.is_constant(v) or (v.name or "") in program.sizes for v in node.outputs):
        return []
    return [outputs[node]] if node in outputs else ends_of(node)


def given_of(made: NewNodes, joined: ir.Value, ends: Ends, shape: Shape) -> list[ir.Value]:
    """What nodes that join values of a shape give, or each of some outputs, where these values are joined."""
    if not ends.nodes:
        sizes = [d for d in shape[-1:] if isinstance(d, int)] * len(ends.values)
        return list(made.parts(joined, sizes, len(shape) - 1))
    (end,) = ends.nodes
    if len(ends.values) == len(end.inputs):
        return [joined]
    behind = end.inputs[ends.before + len(ends.values) :]
    every = [v for v in (*end.inputs[: ends.before], joined, *behind) if v is not None]
    return [made.joined(every, concat_axis(end))]


def replace_ends(model: ir.Model, end: ir.Node, ends: Ends, results: Sequence[ir.Value]) -> None:
    """Let values be what a node gives that joins or adds up, or what those give that give outputs."""
    nodes = [v.producer() for v in ends.values] if not ends.nodes else [end]
    for node, result in zip(nodes, results, strict=True):
        assert node is not None
        replace_node(model, node, [result])


def _kind(value: ir.Value) -> str:
    node = value.producer()
    return "" if node is None else node.op_type


def _goes_on(node: ir.Node) -> bool:
    """Whether it adds anything but a constant, as a bias of the whole."""
    return node.op_type == "Add" and not any(held(v) is not None for v in node.inputs)


def _sum(value: ir.Value) -> ir.Node | None:
    """The sum that a value is, if but one node reads it."""
    node = value.producer()
    return node if is_a(node, "Add") and is_read_once(value) else None
