"""What models declare and onnx_ir does not keep: it is remembered with the values, and declared again in messages.

Outputs that are inputs too are declared twice, where onnx_ir keeps one value. And it has no type for maps, which the
classifiers of scikit-learn give.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import onnx
import onnx_ir as ir

_OUTPUT = "declared as an output"
_MAPS = "declared with a type of maps"


def from_proto(proto: onnx.ModelProto) -> ir.Model:
    """The model of a message, which is changed within this call only."""
    with _without_maps(proto) as maps:
        model = ir.from_proto(proto)
    if maps:
        values = [*model.graph.inputs, *(o for node in model.graph for o in node.outputs)]
        for value in values:
            if value.name in maps:
                value.meta[_MAPS] = maps[value.name]
    _keep_both(model, proto)
    return model


def to_proto(model: ir.Model, without: ir.Model | None = None) -> onnx.ModelProto:
    """The message of a model; or of one with the same nodes, that lacks some weights."""
    proto = ir.to_proto(without or model)
    for value, info in zip(model.graph.outputs, proto.graph.output, strict=True):
        if value.is_graph_input() and _OUTPUT in value.meta:
            info.ParseFromString(value.meta[_OUTPUT])
    _declare_maps(model, proto.graph)
    return proto


@contextmanager
def _without_maps(proto: onnx.ModelProto) -> Iterator[dict[str, bytes]]:
    """What is declared of values of the main graph that hold maps; within the block nothing is."""
    graph = proto.graph
    infos = (*graph.value_info, *graph.input, *graph.output)
    found = [(info, info.SerializeToString()) for info in infos if _holds_maps(info.type)]
    try:
        for info, _ in found:
            info.ClearField("type")
        yield {info.name: declared for info, declared in found}
    finally:
        for info, declared in found:
            info.ParseFromString(declared)


def _holds_maps(of: onnx.TypeProto) -> bool:
    if of.HasField("sequence_type"):
        return _holds_maps(of.sequence_type.elem_type)
    return _holds_maps(of.optional_type.elem_type) if of.HasField("optional_type") else of.HasField("map_type")


def _declare_maps(model: ir.Model, graph: onnx.GraphProto) -> None:
    """Declare the maps of a model's inputs and outputs in its message, and those of other values if they were."""
    ends = {info.name: info for info in (*graph.input, *graph.output)}
    inner = {info.name: info for info in graph.value_info}
    for value in (*model.graph.inputs, *(o for node in model.graph for o in node.outputs)):
        if _MAPS in value.meta:
            info = ends.get(value.name or "") or inner.get(value.name or "") or graph.value_info.add()
            info.ParseFromString(value.meta[_MAPS])


def _keep_both(model: ir.Model, proto: onnx.ModelProto) -> None:
    """Give inputs that are outputs what the message declares of the input, and remember what it does of the output."""
    inputs, outputs = ({i.name: i for i in infos} for infos in (proto.graph.input, proto.graph.output))
    for value in model.graph.inputs:
        name = value.name or ""
        if name in outputs:
            own = ir.serde.deserialize_value_info_proto(inputs[name], None)
            value.type, value.shape, value.doc_string = own.type, own.shape, own.doc_string
            value.metadata_props.clear()
            value.metadata_props.update(own.metadata_props)
            value.meta[_OUTPUT] = outputs[name].SerializeToString()
