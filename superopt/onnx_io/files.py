"""ONNX models and files: load, check, save."""

from __future__ import annotations

import os
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import onnx
import onnx_ir as ir
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from superopt.errors import InvalidModel, UsageError
from superopt.folders import demand_utf8, unfinished
from superopt.onnx_io.checks import MISDECLARED, check_message, refusing
from superopt.onnx_io.embedded import EmbeddedTensor, read
from superopt.onnx_io.messages import demand_shallow, demand_sound, put_in_order
from superopt.onnx_io.other_weights import holding, with_weights
from superopt.onnx_io.passed_on import from_proto, with_texts
from superopt.onnx_io.skeleton import bare, clone, skeleton
from superopt.onnx_io.sparse import dense
from superopt.onnx_io.stream import write
from superopt.onnx_io.surgery import sort
from superopt.onnx_io.weights import DataFiles, check_external, check_weights, external_files, load_inner

Model = str | Path | onnx.ModelProto | ir.Model
"""What a model is given as."""

PROTOBUF_LIMIT = 2**31 - 1
"""A protobuf message is shorter than this; larger models keep their weights in a file beside."""

LARGE = 32 * 2**20
"""Models of more bytes have their weights in a file beside them while they are worked on, so that these are mapped."""

_ROOM = 2**24  # for all that is not weights

_SMALL = 256
"""Weights of at most so many bytes stay in the model, where others go to a file."""


def load(source: Model) -> ir.Model:
    """A checked model that shares tensors with its source and nothing else; external data stay on disk until used.

    Raises `InvalidModel` for what is no valid ONNX model, and `UsageError` for a path that cannot be read.
    """
    if isinstance(source, ir.Model):
        return checked(clone(source))
    if isinstance(source, onnx.ModelProto):
        return _model(source, Path(), "the model")
    path = Path(source)
    proto, embedded = _read(path)
    return _model(proto, path.parent, str(path), embedded)


def checked(model: ir.Model) -> ir.Model:
    """The model itself, as `load` gives a copy of it: for one that nobody else has. Raises `InvalidModel`."""
    return _forget_sizes(model, _check(model, "the model"))


def check(model: ir.Model | onnx.ModelProto, name: str = "the model") -> None:
    """ONNX's full check: structure, types and shapes, and that each tensor has the bytes that its type needs.

    Weights are not handed to ONNX's checker, so models over 2 GB are checked too. Raises `InvalidModel`.
    """
    if isinstance(model, onnx.ModelProto):
        _model(model, Path(), name)
    else:
        _check(model, name)


def _check(model: ir.Model, name: str) -> frozenset[str]:
    """`check`; and the inner values that are declared of sizes that they do not have."""
    check_weights(model, name)
    with refusing(name, "its graph is broken"):
        small = skeleton(model)
    return check_message(small, name)


def save(model: ir.Model, path: str | Path, *, external_data: bool | None = None, shared: bool = False) -> None:
    """Write a model; another process sees the whole file or none.

    Weights go to a file beside it, `<name>.data`, where the model had external data or passes protobuf's 2 GB, or
    where `external_data` asks for it; those that lie in files of this folder already are left there, if they may be
    `shared`. An existing data file is never overwritten: a model may still read from it.
    Raises `UsageError` where the path cannot be written; then nothing has changed there.
    """
    path = Path(path)
    values = _weights(model)
    tensors = [value.const_value for value in values if value.const_value is not None]
    size = sum(t.nbytes for t in tensors) + _ROOM
    outside = external_data or size > PROTOBUF_LIMIT or any(isinstance(t, ir.ExternalTensor) for t in tensors)
    temporary, is_whole = unfinished(path), False
    data = path.with_name(_unused_data_name(path)) if outside else None
    try:
        if data is not None:
            model = _unloaded(model, values, path.parent, data.name, shared)
        with temporary.open("wb") as file:
            write(model, file)
        is_whole = True
        os.replace(temporary, path)
    except BaseException as error:  # an interrupt too leaves nothing behind
        is_in_place = is_whole and not temporary.exists()  # then it needs its weights
        temporary.unlink(missing_ok=True)
        if data is not None and not is_in_place:
            data.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise UsageError(f"{path}: cannot be written: {error.strerror or error}") from None
        raise


def may_hold_weights(file: Path, model: Path) -> bool:
    """Whether `save` may put a model's weights into a file of this name."""
    return (
        file.parent == model.parent and re.fullmatch(rf"{re.escape(model.name)}(\.\d+)?\.data", file.name) is not None
    )


@contextmanager
def gone_after(*models: Path) -> Iterator[None]:
    """Models that are saved at these paths within the block are gone after it, and so are their weights, of which there
    may be many.
    """
    try:
        yield
    finally:
        for model in models:
            model.unlink(missing_ok=True)
            for file in [file for file in model.parent.iterdir() if may_hold_weights(file, model)]:
                file.unlink(missing_ok=True)


def weight_files(source: Path) -> list[Path]:
    """The files of a model's external data, by its message alone: nothing else of the model is checked.

    Raises `InvalidModel` where one is missing or lies outside the model's folder.
    """
    proto, _ = _read(source)
    return sorted(external_files(proto, source.parent, str(source)))


def _unloaded(model: ir.Model, values: Sequence[ir.Value], folder: Path, name: str, shared: bool) -> ir.Model:
    """The model with what these values hold in a file, or in several; strings have no bytes to put there, and stay."""

    def stays(tensor: ir.TensorProtocol) -> bool:
        there = isinstance(tensor, ir.ExternalTensor) and Path(tensor.base_dir) == folder
        return tensor.dtype == ir.DataType.STRING or (shared and there)

    tensors = [v.const_value for v in values if v.const_value is not None]
    moving = [i for i, tensor in enumerate(tensors) if tensor.nbytes > _SMALL and not stays(tensor)]
    placed = ir.external_data.convert_tensors_to_external([tensors[i] for i in moving], folder, name)
    made = [tensor if stays(tensor) else _kept_small(tensor) for tensor in tensors]
    for i, there in zip(moving, placed, strict=True):
        made[i] = with_texts(there, tensors[i])
    if not (folder / name).stat().st_size:
        (folder / name).unlink()
    if all(value.graph is model.graph for value in values):
        return with_weights(model, [holding(value, tensor) for value, tensor in zip(values, made, strict=True)])
    copy = clone(model)
    for value, tensor in zip(_weights(copy), made, strict=True):
        value.const_value = tensor
    return copy


def _weights(model: ir.Model) -> list[ir.Value]:
    """The values of a model and of the graphs within it that hold a tensor."""
    return [v for graph in model.graphs() for v in graph.initializers.values() if v.const_value is not None]


def _kept_small(tensor: ir.TensorProtocol) -> ir.TensorProtocol:
    """A small weight that lies in a file in memory. onnx-ir would close the file, though arrays of it are used."""
    if isinstance(tensor, ir.ExternalTensor) and tensor.nbytes <= _SMALL:
        return with_texts(ir.Tensor(tensor.numpy().copy(), tensor.dtype, name=tensor.name), tensor)
    return tensor


def _unused_data_name(path: Path) -> str:
    name, count = f"{path.name}.data", 0
    while path.with_name(name).exists():
        count += 1
        name = f"{path.name}.{count}.data"
    return name


def _read(path: Path) -> tuple[onnx.ModelProto, dict[str, EmbeddedTensor]]:
    demand_utf8(path)
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise UsageError(
                f"{path}: cannot be read as often as is needed, it is no regular file; save the model to one"
            )
        if path.is_file() and not path.stat().st_size:
            raise InvalidModel(f"{path}: the file is empty")
        return read(path)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from None
    except DecodeError as error:
        if "MaxDepth" in str(error):
            raise InvalidModel(f"{path}: its subgraphs or types are nested deeper than protobuf reads") from None
        raise InvalidModel(f"{path}: not an ONNX model, or cut short: it does not parse as protobuf") from None


def _model(
    proto: onnx.ModelProto, directory: Path, name: str, embedded: Mapping[str, EmbeddedTensor] | None = None
) -> ir.Model:
    """The checked model of a message that was read in a directory; `embedded` are the weights that it lacks."""
    if not proto.HasField("graph") or not proto.ir_version:
        raise InvalidModel(f"{name}: not an ONNX model: it has no graph, or no IR version")
    demand_shallow(proto, name)
    proto = dense(proto, name)
    demand_sound(proto, name, embedded or {})
    files = DataFiles(name)
    for tensor in proto.graph.initializer:
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            check_external(tensor, directory, name, files)
    with refusing(name, "cannot be read"):
        small = bare(proto)
        load_inner(small, directory, name)
    was_in_order = put_in_order(small.graph)
    misdeclared = check_message(small, name)
    with refusing(name, "cannot be read"):
        model = _forget_sizes(from_proto(proto), misdeclared)
        _forget_made_names(proto.graph.node, model.graph)
        if not was_in_order:
            sort(model.graph)
        for function, made in zip(proto.functions, model.functions.values(), strict=True):
            _forget_made_names(function.node, made)
    for label, tensor in (embedded or {}).items():
        model.graph.initializers[label].const_value = tensor
    ir.external_data.set_base_dir(model.graph, directory)
    check_weights(model, name)
    with refusing(name, "cannot be written again"):  # onnx's check lets names pass that are no text
        skeleton(model)
    return model


def _forget_sizes(model: ir.Model, of: Container[str]) -> ir.Model:
    """Take what is declared of the sizes of some values out of a model, in place, and note their names."""
    values = [v for node in model.graph for v in node.outputs if v.name in of]
    for value in values:
        value.shape = None
    model.meta[MISDECLARED] = [value.name for value in values]
    return model


def _forget_made_names(protos: Iterable[onnx.NodeProto], nodes: Iterable[ir.Node]) -> None:
    """The library names nodes that have no name; a model is written as it was, so they lose it again."""
    for proto, node in zip(protos, nodes, strict=True):
        if not proto.name:
            node.name = None
        for attribute in proto.attribute:
            given = node.attributes[attribute.name]
            if attribute.ref_attr_name:  # what a function is called with stands where it is called
                continue
            if attribute.type == onnx.AttributeProto.GRAPH:
                _forget_made_names(attribute.g.node, given.as_graph())
            elif attribute.type == onnx.AttributeProto.GRAPHS:
                for inner, graph in zip(attribute.graphs, given.as_graphs(), strict=True):
                    _forget_made_names(inner.node, graph)
