"""The order of nodes, and which values they read and give."""

from __future__ import annotations

import onnx_ir as ir

from superopt.errors import InvalidModel
from superopt.onnx_io.skeleton import subgraphs


def in_order(graph: ir.Graph) -> list[ir.Node]:
    """The nodes, each after those that it reads from; in the order of the graph where that does it.

    Raises `InvalidModel` for a cycle.
    """
    made_by = {v.name: node for node in graph for v in node.outputs if v.name}
    done: dict[ir.Node, bool] = {}
    order: list[ir.Node] = []
    for root in graph:
        stack = [root]
        while stack:
            node = stack[-1]
            before = [made_by[n] for n in read_values(node) if n in made_by and not done.get(made_by[n])]
            if done.get(node):
                stack.pop()
            elif not before:
                done[node] = True
                order.append(stack.pop())
            elif node in done:
                raise InvalidModel(f"node {node.name or node.op_type!r} takes part in a cycle")
            else:
                done[node] = False
                stack.extend(reversed(before))
    return order


def read_values(node: ir.Node) -> tuple[str, ...]:
    """The names of the outer values that a node reads, itself or in its subgraphs, each once."""
    names = {v.name: None for v in node.inputs if v is not None and v.name}
    for graph in subgraphs(node):
        inner = {v.name for v in (*graph.inputs, *graph.initializers.values())}
        inner |= {v.name for n in graph for v in n.outputs}
        captured = [name for n in graph for name in read_values(n)] + [v.name for v in graph.outputs]
        names.update({name: None for name in captured if name and name not in inner})
    return tuple(names)


def is_read(value: ir.Value) -> bool:
    """Whether anything reads a value, or it is an output."""
    return bool(value.uses()) or value.is_graph_output()


def is_read_once(value: ir.Value) -> bool:
    """Whether but one node reads a value, at one place, and it is no output."""
    return len(value.uses()) == 1 and not value.is_graph_output()


def read_outputs(node: ir.Node) -> tuple[str, ...]:
    """The names of the outputs that something reads; of all where nothing does."""
    named = [v for v in node.outputs if v.name]
    return tuple(v.name or "" for v in [v for v in named if is_read(v)] or named)
