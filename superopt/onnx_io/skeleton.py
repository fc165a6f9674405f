"""A model without its weights: small enough for ONNX's checker and shape inference, whatever the model's size."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from typing import Any

import onnx
import onnx.helper
import onnx_ir as ir
from google.protobuf.message import Message  # type: ignore[import-untyped]

from superopt.onnx_io.other_weights import holding, with_weights
from superopt.onnx_io.passed_on import to_proto

ONNX_DOMAIN = ("", "ai.onnx")
"""The two names of the domain of ONNX's own operators."""

SMALL = 4096
"""Tensors up to this many bytes stay in a skeleton: shapes and axes, whose values shape inference reads."""


def clone(model: ir.Model) -> ir.Model:
    """A copy that shares tensors only; nodes without a name stay without."""
    copy = model.clone()
    for before, after in zip(all_nodes(model), all_nodes(copy), strict=True):
        after.name = before.name
    return copy


def imported_opset(model: ir.Model) -> int | None:
    """The version of ONNX's own operators, whose domain has two names; None where the model imports none."""
    return model.opset_imports.get("", model.opset_imports.get("ai.onnx"))


def opset_of(model: ir.Model) -> int:
    """The version of ONNX's own operators; where the model imports none, that which came with its IR version, or the
    first: it has none of these operators, and what runs it has them.
    """
    imported = imported_opset(model)
    if imported is not None:
        return imported
    return min(
        (opset for _, ir_version, opset, *_ in onnx.helper.VERSION_TABLE if ir_version == model.ir_version), default=1
    )


def all_nodes(model: ir.Model) -> Iterator[ir.Node]:
    """The nodes of a model, of subgraphs and of functions."""
    yield from nodes_within(model.graph)
    for function in model.functions.values():
        yield from nodes_within(function)


def nodes_within(of: ir.Graph | ir.Function) -> Iterator[ir.Node]:
    """The nodes of a graph or function, and of the subgraphs in it. (onnx_ir's own walk fails in functions some of
    whose subgraphs come from the call.)
    """
    for node in of:
        yield node
        for graph in subgraphs(node):
            yield from nodes_within(graph)


def subgraphs(node: ir.Node) -> Iterator[ir.Graph]:
    """The graphs that are attributes of a node; not those that it takes from the call of its function."""
    if not node.attributes:  # as most; looking through none takes longer than this
        return
    for attribute in node.attributes.values():
        if attribute.is_ref():
            continue
        if attribute.type == ir.AttributeType.GRAPH:
            yield attribute.as_graph()
        elif attribute.type == ir.AttributeType.GRAPHS:
            yield from attribute.as_graphs()


def skeleton(model: ir.Model) -> onnx.ModelProto:
    """The model with every large initializer turned into an input of its type. The model is not changed."""
    model = _with_inner_weights(model)
    small: list[ir.Value] = []
    large: list[ir.Value] = []
    for value in model.graph.initializers.values():
        tensor = value.const_value
        if tensor is None or tensor.dtype == ir.DataType.STRING or tensor.nbytes <= SMALL:
            small.append(holding(value, _in_memory(tensor)))
        else:
            large.append(holding(value, None))
            large[-1].type = value.type or ir.TensorType(tensor.dtype)
            large[-1].shape = ir.Shape(tensor.shape.numpy())
    return _with_open_sizes(to_proto(model, without=with_weights(model, small, given=large)))


def _with_inner_weights(model: ir.Model) -> ir.Model:
    """The model, or a copy in which no weights of graphs within it lie in files."""
    if not any(isinstance(value.const_value, ir.ExternalTensor) for value in _inner_weights(model)):
        return model
    copy = clone(model)
    for value in _inner_weights(copy):
        value.const_value = _in_memory(value.const_value)
    return copy


def _inner_weights(model: ir.Model) -> list[ir.Value]:
    """The weights of the graphs within a model."""
    graphs = (graph for node in nodes_within(model.graph) for graph in subgraphs(node))
    return [value for graph in graphs for value in graph.initializers.values()]


def _in_memory(tensor: ir.TensorProtocol | None) -> ir.TensorProtocol | None:
    """A tensor that is in no file: a message alone does not know where that lies."""
    if not isinstance(tensor, ir.ExternalTensor):
        return tensor
    return ir.Tensor(tensor.numpy().copy(), name=tensor.name)  # a view would keep the file open


def fingerprint(model: ir.Model) -> str:
    """A digest of a model without its large weights."""
    return hashlib.sha256(skeleton(model).SerializeToString(deterministic=True)).hexdigest()[:32]


def bare(proto: onnx.ModelProto) -> onnx.ModelProto:
    """A message with every large initializer turned into an input of its type. The message is not changed."""
    small = onnx.ModelProto()
    copy_fields(proto, small, "graph")
    copy_fields(proto.graph, small.graph, "initializer")
    inputs = {i.name for i in proto.graph.input}
    for tensor in proto.graph.initializer:
        # By its sizes: asking a message how many bytes it has takes as long as writing it.
        is_small = 8 * math.prod(tensor.dims) <= SMALL or tensor.data_type == onnx.TensorProto.STRING
        if is_small and tensor.data_location != onnx.TensorProto.EXTERNAL:
            small.graph.initializer.append(tensor)
        elif tensor.name not in inputs:
            small.graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    return _with_open_sizes(small)


def _with_open_sizes(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Make sizes of -1 unknown, in place: that is what runtimes take them for, and what some exporters mean."""
    for info in (*proto.graph.input, *proto.graph.output, *proto.graph.value_info):
        for dim in info.type.tensor_type.shape.dim:
            if dim.dim_value < 0:
                dim.ClearField("dim_value")
    return proto


def copy_fields(source: Any, target: Any, without: str) -> None:
    """Copy all fields of a message but one."""
    for field, value in source.ListFields():
        if field.name == without:
            continue
        # By the value: how a field says that it is repeated differs among the versions of protobuf.
        if isinstance(value, Message):
            getattr(target, field.name).CopyFrom(value)
        elif isinstance(value, str | bytes | int | float):
            setattr(target, field.name, value)
        else:
            getattr(target, field.name).extend(value)
