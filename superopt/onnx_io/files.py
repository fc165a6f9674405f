"""ONNX models, read from files and checked; `saving.py` writes them."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from pathlib import Path

import onnx
import onnx_ir as ir
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from superopt.errors import InvalidModel, UsageError
from superopt.folders import demand_utf8
from superopt.onnx_io.checks import MISDECLARED, check_message, refusing
from superopt.onnx_io.embedded import EmbeddedTensor, read
from superopt.onnx_io.messages import demand_shallow, demand_sound, put_in_order
from superopt.onnx_io.passed_on import from_proto
from superopt.onnx_io.skeleton import bare, clone, skeleton
from superopt.onnx_io.sparse import dense
from superopt.onnx_io.surgery import sort
from superopt.onnx_io.weights import DataFiles, check_external, check_weights, external_files, load_inner

Model = str | Path | onnx.ModelProto | ir.Model
"""What a model is given as."""

LARGE = 32 * 2**20
"""Models of more bytes have their weights in a file beside them while they are worked on, so that these are mapped."""


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


def weight_files(source: Path) -> list[Path]:
    """The files of a model's external data, by its message alone: nothing else of the model is checked.

    Raises `InvalidModel` where one is missing or lies outside the model's folder.
    """
    proto, _ = _read(source)
    return sorted(external_files(proto, source.parent, str(source)))


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
