"""By which tensors values are quantized, as messages say it for those who quantize: scales and zero points, by name.

onnx_ir remembers that with the values, and writes it also where those tensors are gone, and of some values twice.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx
import onnx_ir as ir

_QUANTIZED = "quant_parameter_tensor_names"
"""Where onnx_ir remembers the names with a value."""


def annotate(graph: ir.Graph, proto: onnx.GraphProto, outer: frozenset[str] = frozenset()) -> None:
    """Have a message say by which tensors values are quantized, of each once, where all of them are there; and so in
    the graphs within it, that may name values of the `outer` ones.
    """
    values = [*graph.inputs, *graph.initializers.values(), *(v for node in graph for v in node.outputs)]
    there = outer.union(value.name for value in values if value.name)
    told = {value.name: value.meta[_QUANTIZED] for value in values if value.name and value.meta.get(_QUANTIZED)}
    del proto.quantization_annotation[:]
    for name, tensors in told.items():
        if there.issuperset(tensors.values()):
            entry = proto.quantization_annotation.add(tensor_name=name)
            for key, tensor in sorted(tensors.items()):
                entry.quant_parameter_tensor_names.add(key=key, value=tensor)
    for node, message in zip(graph, proto.node, strict=True):
        for attribute in message.attribute:
            for own, inner in zip(_graphs(node.attributes[attribute.name]), _messages(attribute), strict=True):
                annotate(own, inner, there)


def _graphs(attribute: ir.Attr) -> Sequence[ir.Graph]:
    """The graphs that an attribute holds; none where it is taken from the call of a function."""
    if attribute.is_ref():
        return ()
    if attribute.type == ir.AttributeType.GRAPH:
        return (attribute.as_graph(),)
    return attribute.as_graphs() if attribute.type == ir.AttributeType.GRAPHS else ()


def _messages(attribute: onnx.AttributeProto) -> Sequence[onnx.GraphProto]:
    """The same as messages."""
    return (attribute.g,) if attribute.HasField("g") else attribute.graphs
