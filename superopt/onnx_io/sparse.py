"""Sparse weights as the dense ones that runtimes make of them when they load a model.

ONNX has a sparse tensor as its values and their places: counted through all elements, or a row of indices for each.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import onnx
import onnx_ir as ir
from onnx import TensorProto, numpy_helper

from superopt.arithmetic.carrier import Array
from superopt.errors import InvalidModel
from superopt.onnx_io.messages import attributes, demand_data

MOST_BYTES = 2**30
"""Sparse tensors that take more together, as dense ones, are refused: they have to fit into a message, and into memory.
"""


def dense(proto: onnx.ModelProto, name: str) -> onnx.ModelProto:
    """The message with dense weights in place of sparse ones, in a copy; itself where it has none. What nodes of other
    operators than Constant hold stays. Raises `InvalidModel` for a sparse tensor that is none, with its name.
    """
    if not any(graph.sparse_initializer for graph in _graphs(proto)) and not any(map(_sparse_value, _nodes(proto))):
        return proto
    made = onnx.ModelProto()
    made.CopyFrom(proto)
    room = MOST_BYTES
    for graph in _graphs(made):
        for sparse in graph.sparse_initializer:
            graph.initializer.append(_dense(sparse, f"{name}: sparse initializer {sparse.values.name!r}", room))
            room -= len(graph.initializer[-1].raw_data)
        del graph.sparse_initializer[:]
    for node in _nodes(made):
        if (held := _sparse_value(node)) is not None:
            tensor = _dense(held.sparse_tensor, f"{name}: sparse value of {node.output[0]!r}", room)
            room -= len(tensor.raw_data)
            held.Clear()
            held.name, held.type = "value", onnx.AttributeProto.TENSOR
            held.t.CopyFrom(tensor)
    return made


def _nodes(proto: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    """The nodes of a model, of its functions, and of the graphs within these."""
    for nodes in (f.node for f in (*_graphs(proto), *proto.functions)):
        yield from nodes


def _graphs(proto: onnx.ModelProto) -> list[onnx.GraphProto]:
    """The graph of a model, and those within it and its functions."""
    held = attributes(node for f in (proto.graph, *proto.functions) for node in f.node)
    return [proto.graph, *(graph for attribute in held for graph in (attribute.g, *attribute.graphs))]


def _sparse_value(node: onnx.NodeProto) -> onnx.AttributeProto | None:
    """The attribute of a Constant that holds a sparse tensor."""
    held = [a for a in node.attribute if a.name == "sparse_value" and a.HasField("sparse_tensor")]
    return held[0] if held and node.op_type == "Constant" and len(node.attribute) == len(node.output) == 1 else None


def _dense(sparse: onnx.SparseTensorProto, label: str, room: int) -> TensorProto:
    """A sparse tensor as a dense one of the same name, zero but for its values, for which there are so many bytes."""
    values, indices, dims = sparse.values, sparse.indices, list(sparse.dims)
    if TensorProto.EXTERNAL in (values.data_location, indices.data_location):
        raise InvalidModel(f"{label} has its data in a file, which is not supported; put them into the model")
    demand_data(values, "the tensor of its values", label)
    demand_data(indices, "the tensor of its indices", label)
    kind = ir.DataType(values.data_type)
    if kind == ir.DataType.STRING or kind.bitwidth % 8:
        raise InvalidModel(f"{label} is of {kind}, which is not supported; make it dense first")
    width, size = kind.bitwidth // 8, math.prod(dims)
    if not dims or min(dims) < 1:
        raise InvalidModel(f"{label} has sizes {dims}; they are at least 1")
    if size * width > room:
        raise InvalidModel(
            f"{label} takes {size * width} bytes where it is dense; {MOST_BYTES} is the most for all of them"
        )
    data = np.zeros((size, width), np.uint8)
    raw = np.frombuffer(ir.serde.deserialize_tensor(values).tobytes(), np.uint8)
    data[_places(values, indices, dims, label)] = raw.reshape(-1, width)
    made = TensorProto(name=values.name, data_type=values.data_type, dims=dims, raw_data=data.tobytes())
    if values.doc_string:
        made.doc_string = values.doc_string
    made.metadata_props.extend(values.metadata_props)
    return made


def _places(values: TensorProto, indices: TensorProto, dims: list[int], label: str) -> Array:
    """Where the values of a sparse tensor stand among all of its elements."""
    count = math.prod(values.dims)
    forms: list[list[int]] = [[count], [count, len(dims)]]
    if len(values.dims) != 1 or indices.data_type != TensorProto.INT64 or list(indices.dims) not in forms:
        kind = ir.DataType(indices.data_type)
        raise InvalidModel(
            f"{label} has values of sizes {list(values.dims)} and indices of {kind}{list(indices.dims)}; "
            f"needed are [n], and INT64[n] or INT64[n, {len(dims)}]"
        )
    places = numpy_helper.to_array(indices)
    if places.ndim == 2:
        if (places < 0).any() or (places >= dims).any():
            raise InvalidModel(f"{label} has an index that lies outside its sizes {dims}")
        places = np.ravel_multi_index(tuple(places.T), tuple(dims))
    if (places < 0).any() or (places >= math.prod(dims)).any():
        raise InvalidModel(f"{label} has an index that lies outside its sizes {dims}")
    if (np.diff(places) <= 0).any():
        raise InvalidModel(f"{label} has indices that do not rise")
    return places
