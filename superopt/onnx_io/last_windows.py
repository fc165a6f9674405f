"""Pools whose sizes are rounded up, as ONNX's inference is to read them.

Rounded up, a last window may start behind the image and what pads it. Frameworks and runtimes leave it out, and since
opset 22 so does ONNX's text; for pools of opsets before onnx 1.23 counts it still, tells sizes that are one too large,
and refuses models that declare the right ones.
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx

from superopt.onnx_io.skeleton import ONNX_DOMAIN

LEFT_OUT = 22
"""The opset from which on inference leaves such windows out."""

_DOMAIN = "superopt.pools"
"""A domain of functions that no model has."""

_POOLS = ("AveragePool", "LpPool", "MaxPool")


def _has_rounded_up(proto: onnx.ModelProto) -> bool:
    """Whether a message has pools that its opset's inference may misjudge."""
    opsets = [i.version for i in proto.opset_import if i.domain in ONNX_DOMAIN]
    return min(opsets, default=LEFT_OUT) < LEFT_OUT and any(map(_is_rounded_up, nodes_of(proto.graph)))


def with_last_windows(proto: onnx.ModelProto) -> onnx.ModelProto:
    """The message itself, or a copy whose pools are judged as runtimes have them."""
    if not _has_rounded_up(proto):
        return proto
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    say_last_windows(copy)
    return copy


def say_last_windows(proto: onnx.ModelProto) -> None:
    """Have these pools inferred as those of opset 22, which mean what runtimes do, in place: each calls a function."""
    if not _has_rounded_up(proto):
        return
    opset = [onnx.helper.make_opsetid("", LEFT_OUT)]
    for count, node in enumerate([n for n in nodes_of(proto.graph) if _is_rounded_up(n)]):
        inner, name = onnx.NodeProto(), f"Pool{count}"
        inner.CopyFrom(node)
        inner.input[:], inner.output[:] = ["x"], [f"y{i}" for i in range(len(node.output))]
        made = onnx.helper.make_function(_DOMAIN, name, ["x"], list(inner.output), [inner], opset)
        proto.functions.append(made)
        node.domain, node.op_type = _DOMAIN, name
        del node.attribute[:]
    proto.opset_import.append(onnx.helper.make_opsetid(_DOMAIN, 1))


def _is_rounded_up(node: onnx.NodeProto) -> bool:
    is_pool = node.op_type in _POOLS and node.domain in ONNX_DOMAIN
    return is_pool and any(a.name == "ceil_mode" and a.i for a in node.attribute)


def nodes_of(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """The nodes of a graph, and of those within it."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                yield from nodes_of(inner)
