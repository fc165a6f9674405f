"""What models declare and onnx_ir does not keep: it is remembered with the values, and declared again in messages.

Outputs that are inputs too are declared twice, where onnx_ir keeps one value. It has no type for maps, which the
classifiers of scikit-learn give. What weights are declared of it tells of all of them, or of none where their data are
written apart; and what is said of a tensor twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import onnx
import onnx_ir as ir

from superopt.onnx_io.annotated import annotate

Told = TypeVar("Told", bound=ir.TensorProtocol)

_OUTPUT = "declared as an output"
_MAPS = "declared with a type of maps"
_WEIGHT = "declared as values are"


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
    for info in proto.graph.value_info:
        if info.name in model.graph.initializers:
            model.graph.initializers[info.name].meta[_WEIGHT] = True
    return model


def to_proto(model: ir.Model, without: ir.Model | None = None) -> onnx.ModelProto:
    """The message of a model; or of one with the same nodes, that lacks some weights."""
    proto = ir.to_proto(without or model)
    inputs = {value.name for value in model.graph.inputs}
    for value, info in zip(model.graph.outputs, proto.graph.output, strict=True):
        if value.name in inputs and _OUTPUT in value.meta:
            info.ParseFromString(value.meta[_OUTPUT])
    _declare_maps(model, proto.graph)
    _declare_weights(model, proto.graph)
    annotate(model.graph, proto.graph)
    for tensor in proto.graph.initializer:
        _say_once(tensor)
    return proto


def with_texts(made: Told, of: ir.TensorProtocol) -> Told:
    """A tensor that holds the data of another one, with what is said of that one."""
    made.doc_string = of.doc_string
    made.metadata_props.update(of.metadata_props)
    return made


def tensor_proto(tensor: ir.TensorProtocol) -> onnx.TensorProto:
    """The message of a tensor."""
    proto = ir.serde.serialize_tensor(tensor)  # what it is takes `to_proto` longer to find out
    _say_once(proto)
    return proto


def _say_once(tensor: onnx.TensorProto) -> None:
    """Take out what onnx_ir adds to the message that it has copied, in place."""
    said = {entry.key: entry.value for entry in tensor.metadata_props}
    if len(said) < len(tensor.metadata_props):
        del tensor.metadata_props[:]
        for key, value in said.items():
            tensor.metadata_props.add(key=key, value=value)


def _declare_weights(model: ir.Model, graph: onnx.GraphProto) -> None:
    """Declare those weights of the main graph as values that were so."""
    weights, inputs = model.graph.initializers, {info.name for info in graph.input}
    others = [info for info in graph.value_info if info.name not in weights]
    del graph.value_info[:]
    graph.value_info.extend(others)
    declared = [value for name, value in weights.items() if _WEIGHT in value.meta and name not in inputs]
    graph.value_info.extend(map(ir.serde.serialize_value, declared))


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
