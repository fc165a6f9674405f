"""Models without nodes whose values nothing needs: exporters and tools leave some behind, and runtimes run them."""

from __future__ import annotations

from collections.abc import Iterable

import onnx_ir as ir

from superopt.onnx_io.skeleton import ONNX_DOMAIN, clone, nodes_within, subgraphs
from superopt.onnx_io.surgery import bury

_COMPUTING = (*ONNX_DOMAIN, "ai.onnx.ml", "com.microsoft")
"""The domains whose operators do nothing but compute what they give."""


def without_unneeded(model: ir.Model) -> tuple[ir.Model, bool]:
    """The model without nodes of the main graph that no output needs, in a copy, and whether these take time when it
    runs: what is made of constants and of sizes alone does not. The interface stays as it is.

    Operators of other domains may do more than give values, so they stay, and all that they need.
    """
    needed = _needed(model.graph)
    idle = {number: node for number, node in enumerate(model.graph) if node not in needed}
    if not idle:
        return model, False
    takes_time = not _fed(model.graph).isdisjoint(idle.values())
    model = clone(model)
    nodes = list(model.graph)
    bury(model, [value for number in idle for value in nodes[number].outputs])
    return model, takes_time


def _needed(graph: ir.Graph) -> set[ir.Node]:
    """The nodes of a graph that its outputs need, or others that may do more than compute."""
    stack = [v.producer() for v in graph.outputs] + [node for node in graph if not _only_computes(node)]
    found = set[ir.Node]()
    while stack:
        node = stack.pop()
        if node is not None and node.graph is graph and node not in found:
            found.add(node)
            stack += [v.producer() for v in _read(node) if v is not None]
    return found


def _read(node: ir.Node) -> Iterable[ir.Value | None]:
    """What a node takes, and what the nodes in its subgraphs do."""
    yield from node.inputs
    for inner in subgraphs(node):
        yield from inner.outputs
        for each in nodes_within(inner):
            yield from each.inputs


def _only_computes(node: ir.Node) -> bool:
    inner = (each for graph in subgraphs(node) for each in nodes_within(graph))
    return all(each.domain in _COMPUTING for each in (node, *inner))


def _fed(graph: ir.Graph) -> set[ir.Node]:
    """The nodes that compute with what is given to the model, and not with its sizes alone."""
    given = {v for v in graph.inputs if not v.is_initializer()}
    found = set[ir.Node]()
    for node in graph:
        if node.op_type not in ("Shape", "Size") and any(v in given or v.producer() in found for v in _read(node) if v):
            found.add(node)
    return found
