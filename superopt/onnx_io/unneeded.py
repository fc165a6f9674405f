"""Models without nodes whose values nothing needs: exporters and tools leave some behind, and runtimes run them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import onnx_ir as ir

from superopt.onnx_io.order import in_order, read_values
from superopt.onnx_io.skeleton import ONNX_DOMAIN, clone, nodes_within, subgraphs
from superopt.onnx_io.surgery import bury, let_go

_COMPUTING = (*ONNX_DOMAIN, "ai.onnx.ml", "com.microsoft")
"""The domains whose operators do nothing but compute what they give."""

Reads: TypeAlias = "Mapping[ir.Node, Sequence[str]]"
"""By node the names of the outer values that it reads."""


def without_unneeded(model: ir.Model) -> tuple[ir.Model, bool]:
    """The model without nodes of the main graph that no output needs, in a copy, and whether these take time when it
    runs: what is made of constants and of sizes alone does not. The interface stays as it is.

    Operators of other domains may do more than give values, so they stay, and all that they need. Raises `InvalidModel`
    for a cycle.
    """
    reads = {node: read_values(node) for node in model.graph}
    needed = _needed(model.graph, reads)
    idle = {number: node for number, node in enumerate(model.graph) if node not in needed}
    if not idle:
        return model, False
    takes_time = not _fed(model.graph, reads).isdisjoint(idle.values())
    model = clone(model)
    nodes = list(model.graph)
    read = [value for number in idle for value in let_go(nodes[number])]
    model.graph.remove([nodes[number] for number in idle])
    bury(model, dict.fromkeys(read))  # weights that nothing else reads
    return model, takes_time


def _needed(graph: ir.Graph, reads: Reads) -> set[ir.Node]:
    """The nodes of a graph that its outputs need, or others that may do more than compute."""
    made_by = {v.name: node for node in graph for v in node.outputs if v.name}
    stack = [made_by.get(v.name or "") for v in graph.outputs] + [node for node in graph if not _only_computes(node)]
    found = set[ir.Node]()
    while stack:
        node = stack.pop()
        if node is not None and node not in found:
            found.add(node)
            stack += map(made_by.get, reads[node])
    return found


def _only_computes(node: ir.Node) -> bool:
    inner = (each for graph in subgraphs(node) for each in nodes_within(graph))
    return all(each.domain in _COMPUTING for each in (node, *inner))


def _fed(graph: ir.Graph, reads: Reads) -> set[ir.Node]:
    """The nodes that compute with what is given to the model, and not with its sizes alone. Raises `InvalidModel` for a
    cycle.
    """
    given = {v.name for v in graph.inputs if not v.is_initializer()}
    found = set[ir.Node]()
    for node in in_order(graph):
        if node.op_type not in ("Shape", "Size") and not given.isdisjoint(reads[node]):
            found.add(node)
            given.update(v.name for v in node.outputs)
    return found
