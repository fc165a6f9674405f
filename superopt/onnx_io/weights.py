"""The bytes of a model's weights: that they are there, inside the model's folder, and as many as their types need."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import onnx
import onnx_ir as ir

from superopt.errors import InvalidModel


def check_weights(model: ir.Model, name: str) -> None:
    """Raise `InvalidModel` for the first initializer that lacks bytes."""
    for graph in model.graphs():
        for label, value in graph.initializers.items():
            tensor = value.const_value
            if tensor is None or tensor.dtype in (ir.DataType.STRING, ir.DataType.UNDEFINED):
                continue  # the checker's business
            held = tensor.nbytes
            if isinstance(tensor, ir.ExternalTensor):
                path = data_file(str(tensor.location), Path(tensor.base_dir), label, name)
                stated = held if tensor.length is None else tensor.length
                held = min(path.stat().st_size - (tensor.offset or 0), stated)
            elif isinstance(tensor, ir.serde.TensorProtoTensor):
                held = len(tensor.tobytes())
            if held != tensor.nbytes:
                type_ = f"{tensor.dtype}{tensor.shape}"
                raise InvalidModel(f"{name}: initializer {label!r} holds {held} bytes, {type_} needs {tensor.nbytes}")


def data_file(location: str, folder: Path, label: str, name: str) -> Path:
    """The file of an external tensor. Raises `InvalidModel` where it is missing, or not below the model's folder."""
    path = folder / location
    if Path(location).is_absolute() or not path.resolve().is_relative_to(folder.resolve()):
        raise InvalidModel(f"{name}: external data {location!r} of {label!r} lie outside the model's folder")
    if not path.is_file():
        raise InvalidModel(f"{name}: external data file {str(path)!r} of {label!r} is missing")
    return path


def load_inner(proto: onnx.ModelProto, folder: Path, name: str) -> None:
    """Read the external weights of subgraphs into a message.

    Raises `InvalidModel` where they are missing, and for external data in attributes, which are not supported.
    """
    for attribute in _attributes([n for f in (proto.graph, *proto.functions) for n in f.node]):
        if any(t.data_location == onnx.TensorProto.EXTERNAL for t in (attribute.t, *attribute.tensors)):
            raise InvalidModel(f"{name}: external data in an attribute ({attribute.name}) are not supported")
        for graph in (attribute.g, *attribute.graphs):
            for tensor in graph.initializer:
                if tensor.data_location == onnx.TensorProto.EXTERNAL:
                    location = next((e.value for e in tensor.external_data if e.key == "location"), "")
                    data_file(location, folder, tensor.name, name)
                    onnx.external_data_helper.load_external_data_for_tensor(tensor, str(folder))
                    tensor.data_location = onnx.TensorProto.DEFAULT
                    del tensor.external_data[:]


def _attributes(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.AttributeProto]:
    for node in nodes:
        for attribute in node.attribute:
            yield attribute
            for graph in (attribute.g, *attribute.graphs):
                yield from _attributes(graph.node)
