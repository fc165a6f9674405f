"""Outputs that are inputs too: ONNX declares them twice, onnx_ir keeps one value, so the other is kept apart."""

from __future__ import annotations

import onnx
import onnx_ir as ir

_OUTPUT = "declared as an output"


def keep_both(model: ir.Model, proto: onnx.ModelProto) -> None:
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


def declare_both(model: ir.Model, proto: onnx.ModelProto) -> None:
    """Give the outputs of a model's message what was remembered of them, in place."""
    for value, info in zip(model.graph.outputs, proto.graph.output, strict=True):
        if value.is_graph_input() and _OUTPUT in value.meta:
            info.ParseFromString(value.meta[_OUTPUT])
