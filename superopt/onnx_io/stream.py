"""Writing a model weight by weight: a message of the whole, and its bytes, would take twice the memory of the weights.

All that is needed to put weights behind the rest is to know how long they will be.
"""

from __future__ import annotations

from typing import IO

import onnx
import onnx_ir as ir

from superopt.onnx_io.other_weights import with_weights
from superopt.onnx_io.passed_on import tensor_proto, to_proto
from superopt.onnx_io.skeleton import copy_fields
from superopt.onnx_io.wire import fields, frame

_GRAPH: int = onnx.ModelProto.GRAPH_FIELD_NUMBER


def write(model: ir.Model, file: IO[bytes]) -> None:
    """Write a model as one ONNX message. Initializers follow all else of the main graph, in their order.

    Fields come in the order of their numbers, as protobuf writes them: OpenVINO 2026.4 takes a file for no model in
    which two opsets are imported before the graph.
    """
    weights = [v.const_value for v in model.graph.initializers.values()]
    proto = to_proto(model, without=with_weights(model, ()))
    around = onnx.ModelProto()
    copy_fields(proto, around, without="graph")
    parts = [_parts(tensor) for tensor in weights if tensor is not None]
    lengths = [len(head) + (0 if raw is None else raw.nbytes) for head, raw in parts]
    frames = [frame(onnx.GraphProto.INITIALIZER_FIELD_NUMBER, length) for length in lengths]
    graph = proto.graph.SerializeToString()
    rest = around.SerializeToString()
    place = next((field.start for field in fields(rest, 0, len(rest)) if field.number > _GRAPH), len(rest))
    file.write(rest[:place])
    file.write(frame(_GRAPH, len(graph) + sum(map(len, frames)) + sum(lengths)))
    file.write(graph)
    for before, (head, raw) in zip(frames, parts, strict=True):
        file.write(before)
        file.write(head)
        if raw is not None:
            raw.tofile(file)  # type: ignore[attr-defined]  # the library's protocol lacks it, its tensors have it
    file.write(rest[place:])


def _parts(tensor: ir.TensorProtocol) -> tuple[bytes, ir.TensorProtocol | None]:
    """A tensor's message, and what its bytes still lack: the tensor's own, that is in raw form."""
    if isinstance(tensor, ir.ExternalTensor | ir.StringTensor):
        return tensor_proto(tensor).SerializeToString(), None
    proto = onnx.TensorProto()
    if isinstance(tensor, ir.serde.TensorProtoTensor):
        if not tensor.raw.HasField("raw_data"):  # its numbers stand in another field, and stay there
            return tensor_proto(tensor).SerializeToString(), None
        copy_fields(tensor.raw, proto, without="raw_data")
    else:
        if tensor.name:
            proto.name = tensor.name
        if tensor.doc_string:
            proto.doc_string = tensor.doc_string
        proto.data_type = tensor.dtype.value
        proto.dims.extend(tensor.shape.numpy())
        for key, value in tensor.metadata_props.items():
            proto.metadata_props.add(key=key, value=value)
    return proto.SerializeToString() + frame(onnx.TensorProto.RAW_DATA_FIELD_NUMBER, tensor.nbytes), tensor
