"""The bytes of a model's weights: that they are there, inside the model's folder, and as many as their types need."""

from __future__ import annotations

import math
from pathlib import Path

import onnx
import onnx_ir as ir

from superopt.errors import InvalidModel, one_line
from superopt.onnx_io.messages import attributes


class DataFiles:
    """The files of a model's external tensors, each of which is looked at once: thousands of weights lie in one."""

    def __init__(self, name: str) -> None:
        """`name` is what the model is called in errors."""
        self._name = name
        self._sizes: dict[tuple[str, Path], int] = {}

    def size(self, location: str, folder: Path, label: str) -> int:
        """The bytes of the file of an external tensor. Raises what `data_file` does."""
        if (location, folder) not in self._sizes:
            self._sizes[location, folder] = data_file(location, folder, label, self._name).stat().st_size
        return self._sizes[location, folder]


def check_weights(model: ir.Model, name: str) -> None:
    """Raise `InvalidModel` for the first initializer that lacks bytes."""
    files = DataFiles(name)
    for graph in model.graphs():
        for label, value in graph.initializers.items():
            tensor = value.const_value
            if tensor is None or tensor.dtype in (ir.DataType.STRING, ir.DataType.UNDEFINED):
                continue  # the checker's business
            held = tensor.nbytes
            if isinstance(tensor, ir.ExternalTensor):
                size = files.size(str(tensor.location), Path(tensor.base_dir), label)
                stated = held if tensor.length is None else tensor.length
                held = min(size - (tensor.offset or 0), stated)
            elif isinstance(tensor, ir.serde.TensorProtoTensor):
                held = len(tensor.tobytes())
            if held != tensor.nbytes:
                type_ = f"{tensor.dtype}{tensor.shape}"
                raise InvalidModel(f"{name}: initializer {label!r} holds {held} bytes, {type_} needs {tensor.nbytes}")


def data_file(location: str, folder: Path, label: str, name: str) -> Path:
    """The file of an external tensor.

    Raises `InvalidModel` where it is missing, or not below the model's folder. Where the other names of a file with
    several (hard links) lie cannot be told, so such a file is refused too, as ONNX itself does.
    """
    culprit = f"{name}: external data {location[:99]!r} of {label!r}"
    path = folder / location
    try:
        if Path(location).is_absolute() or not path.resolve().is_relative_to(folder.resolve()):
            raise InvalidModel(f"{culprit} lie outside the model's folder")
        if not path.is_file():
            raise InvalidModel(f"{name}: external data file {str(path)!r} of {label!r} is missing")
        if path.stat().st_nlink > 1:
            raise InvalidModel(f"{culprit} have other names (hard links), maybe outside the model's folder; copy them")
    except (OSError, ValueError, RuntimeError) as error:  # a name too long, one with a null byte, links in a circle
        raise InvalidModel(f"{culprit} cannot be reached: {one_line(error, 300)}") from None
    return path


def check_external(tensor: onnx.TensorProto, folder: Path, name: str, files: DataFiles) -> None:
    """That the file of an external tensor is there, and holds its bytes. Raises `InvalidModel`."""
    culprit = f"{name}: initializer {tensor.name!r}"
    entries = {entry.key: entry.value for entry in tensor.external_data}
    if len(entries) < len(tensor.external_data):
        raise InvalidModel(f"{culprit} says twice where its external data are")
    if tensor.data_type == onnx.TensorProto.STRING:
        raise InvalidModel(f"{culprit}: strings cannot be external")
    for key in ("offset", "length"):
        if key in entries and not (entries[key].isascii() and entries[key].isdigit()):
            raise InvalidModel(f"{culprit}: the {key} of its external data is {entries[key][:99]!r}, not a number")
    size = files.size(entries.get("location", ""), folder, tensor.name)
    type_ = ir.DataType(tensor.data_type)
    needed = math.ceil(type_.bitwidth * math.prod(tensor.dims) / 8)
    held = max(0, size - int(entries.get("offset", 0)))
    held = min(held, int(entries.get("length", needed)))
    if held != needed:
        shape = ",".join(map(str, tensor.dims))
        raise InvalidModel(f"{culprit} holds {held} bytes, {type_}[{shape}] needs {needed}")


def external_files(proto: onnx.ModelProto, folder: Path, name: str) -> set[Path]:
    """The files of all external weights of a message, those of its subgraphs too. Raises what `data_file` does."""
    inner = attributes([n for f in (proto.graph, *proto.functions) for n in f.node])
    graphs = (proto.graph, *(graph for a in inner for graph in (a.g, *a.graphs)))
    outside = [t for g in graphs for t in g.initializer if t.data_location == onnx.TensorProto.EXTERNAL]
    places = {e.value: t.name for t in outside for e in t.external_data if e.key == "location"}
    return {data_file(location, folder, label, name) for location, label in places.items()}


def load_inner(proto: onnx.ModelProto, folder: Path, name: str) -> None:
    """Read the external weights of subgraphs into a message.

    Raises `InvalidModel` where they are missing, and for external data in attributes, which are not supported.
    """
    files = DataFiles(name)
    for attribute in attributes([n for f in (proto.graph, *proto.functions) for n in f.node]):
        if any(t.data_location == onnx.TensorProto.EXTERNAL for t in (attribute.t, *attribute.tensors)):
            raise InvalidModel(f"{name}: external data in an attribute ({attribute.name}) are not supported")
        for graph in (attribute.g, *attribute.graphs):
            for tensor in graph.initializer:
                if tensor.data_location == onnx.TensorProto.EXTERNAL:
                    check_external(tensor, folder, name, files)
                    onnx.external_data_helper.load_external_data_for_tensor(tensor, str(folder))
                    tensor.data_location = onnx.TensorProto.DEFAULT
                    del tensor.external_data[:]
