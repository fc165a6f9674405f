"""Graphs within graphs, the values of each, and other names for these."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, count

import onnx_ir as ir

from superopt.onnx_io.passed_on import with_texts
from superopt.onnx_io.skeleton import nodes_within, subgraphs

FEW = 10
"""Below this, values of one name are numbered in a row."""


def values(graph: ir.Graph) -> Iterator[ir.Value]:
    """What a graph is given, holds and computes, without its subgraphs."""
    yield from graph.inputs
    yield from (v for v in graph.initializers.values() if not v.is_graph_input())
    for node in graph:
        yield from node.outputs


def name_of(value: ir.Value | None) -> str:
    """What a value is called; nothing where there is none, as where an input is left out."""
    return "" if value is None else value.name or ""


def by_name(graph: ir.Graph) -> dict[str, ir.Value]:
    """What a graph is given, holds and computes, by name; others within it may have the same names."""
    return {value.name or "": value for value in values(graph)}


def deep_values(graph: ir.Graph) -> Iterator[ir.Value]:
    """The values of a graph and of those within it."""
    for one in (graph, *within(graph)):
        yield from values(one)


def within(graph: ir.Graph) -> Iterator[ir.Graph]:
    """The graphs that stand within another one."""
    for node in nodes_within(graph):
        yield from subgraphs(node)


def itself(value: ir.Value) -> ir.Value:
    """What a value is a copy of."""
    while (node := value.producer()) is not None and node.op_type == "Identity" and node.inputs[0] is not None:
        value = node.inputs[0]
    return value


def rename(value: ir.Value, taken: set[str], after: str | None = None) -> None:
    """Give a value a name that is not taken, made of its own or `after` another; that is taken from then on. A tensor
    that it shares with other models keeps its name.
    """
    value.const_value = _named_apart(value.const_value)
    name = base = (value.name or "") if after is None else after
    numbers = chain(range(2, FEW), count(max(FEW, len(taken))))  # of many of one name each would try all before it
    while name in taken:
        name = f"{base}_{next(numbers)}"
    if name != (value.name or ""):
        value.name = name
    taken.add(name)


def _named_apart(tensor: ir.TensorProtocol | None) -> ir.TensorProtocol | None:
    """The same tensor, but for its name, which changes with that of its value."""
    if tensor is None:
        return None
    shape = ir.Shape(tensor.shape.numpy())
    if isinstance(tensor, ir.ExternalTensor):
        place = tensor.location, tensor.offset, tensor.length, tensor.dtype
        apart = ir.ExternalTensor(*place, shape=shape, name=tensor.name or "", base_dir=tensor.base_dir)
        return with_texts(apart, tensor)
    return with_texts(ir.LazyTensor(lambda: tensor, dtype=tensor.dtype, shape=shape, name=tensor.name), tensor)
