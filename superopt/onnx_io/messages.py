"""What is wrong with a message, where ONNX's own check sees it late, at great cost, without a name, or not at all."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from graphlib import CycleError, TopologicalSorter

import onnx
import onnx_ir as ir
from onnx.helper import tensor_dtype_to_field

from superopt.errors import InvalidModel
from superopt.onnx_io.skeleton import ONNX_DOMAIN

DEEPEST = 32
"""How deep subgraphs may be nested; protobuf reads no deeper either."""
MOST_NODES = 2**20
"""How many nodes a function may stand for: ONNX's check expands every call, and n functions can mean 2ⁿ nodes."""

_TYPED = ("float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data")
_KNOWN = frozenset(d.value for d in ir.DataType) - {onnx.TensorProto.UNDEFINED}
_COMPLEX = (onnx.TensorProto.COMPLEX64, onnx.TensorProto.COMPLEX128)


def demand_sound(proto: onnx.ModelProto, name: str, apart: Container[str] = ()) -> None:
    """Raise `InvalidModel` with the culprit's name, of a message whose subgraphs are not too deep. The bytes of the
    initializers named in `apart` are elsewhere.
    """
    if proto.training_info:
        raise InvalidModel(f"{name}: training_info is not supported; remove it first")
    for tensor in proto.graph.initializer:
        demand_data(tensor, f"initializer {tensor.name!r}", name, tensor.name in apart)
    _demand_declared_types(proto.graph, name)
    for attribute in attributes(_all_nodes(proto)):
        if attribute.HasField("sparse_tensor") or attribute.sparse_tensors:
            raise InvalidModel(f"{name}: attribute {attribute.name!r} is sparse, which is not supported; make it dense")
        own = [attribute.t] if attribute.HasField("t") else []
        for tensor in (*own, *attribute.tensors):
            demand_data(tensor, f"attribute {attribute.name!r}", name)
        for graph in (attribute.g, *attribute.graphs):
            for tensor in graph.initializer:
                demand_data(tensor, f"initializer {tensor.name!r}", name)
    _demand_few_calls(proto, name)
    for node in _within(_all_nodes(proto)):
        _demand_parts(node, name)


def _demand_parts(node: onnx.NodeProto, name: str) -> None:
    """Raise `InvalidModel` for a Split into fewer parts than it gives, at which ONNX's inference ends the process."""
    if node.op_type != "Split" or node.domain not in ONNX_DOMAIN:
        return
    told = [a.i for a in node.attribute if a.name == "num_outputs" and not a.ref_attr_name]
    if told and told[0] < len(node.output):
        culprit = node.name or node.output[0]
        wrong = f"node {culprit!r} says num_outputs {told[0]} and gives {len(node.output)}"
        raise InvalidModel(f"{name}: {wrong}; make them equal")


def attributes(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.AttributeProto]:
    """The attributes of nodes, and of those in their subgraphs."""
    return (attribute for node in _within(nodes) for attribute in node.attribute)


def _within(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Nodes, and those in their subgraphs."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                yield from _within(graph.node)


def _all_nodes(proto: onnx.ModelProto) -> list[onnx.NodeProto]:
    return [node for f in (proto.graph, *proto.functions) for node in f.node]


def demand_shallow(proto: onnx.ModelProto, name: str) -> None:
    """Raise `InvalidModel` where subgraphs are nested deeper than anybody reads: with the culprit's name."""
    level = _all_nodes(proto)
    for _ in range(DEEPEST + 1):
        holders = [(n, g) for n in level for a in n.attribute for g in (a.g, *a.graphs) if g.node]
        if not holders:
            return
        outermost, level = holders[0][0], [inner for _, graph in holders for inner in graph.node]
    culprit = outermost.name or outermost.op_type
    raise InvalidModel(f"{name}: subgraphs are nested more than {DEEPEST} deep, at node {culprit!r}")


def demand_data(tensor: onnx.TensorProto, label: str, name: str, is_apart: bool = False) -> None:
    """That sizes are possible, and that the elements stand in one field, as many as the sizes say."""
    type_ = _type_of(tensor, f"{name}: {label}")
    if any(d < 0 for d in tensor.dims) or math.prod(max(d, 1) for d in tensor.dims) * 16 >= 2**63:
        raise InvalidModel(f"{name}: {label} has impossible sizes: {type_}")
    count = math.prod(tensor.dims)
    fields = [f for f in _TYPED if len(getattr(tensor, f))]
    fields += ["raw_data"] if is_apart or tensor.HasField("raw_data") else []
    fields += ["external_data"] if tensor.data_location == onnx.TensorProto.EXTERNAL else []
    if len(fields) > 1:
        raise InvalidModel(f"{name}: {label} holds its data twice: in {fields[0]} and in {fields[1]}")
    if not fields and count:
        raise InvalidModel(f"{name}: {label} holds no data, {type_} needs some")
    if fields and fields[0] in _TYPED:
        if fields[0] != tensor_dtype_to_field(tensor.data_type):
            raise InvalidModel(f"{name}: {label} holds its data in {fields[0]}, where {type_} has none")
        held, needed = len(getattr(tensor, fields[0])), count * (1 + (tensor.data_type in _COMPLEX))
        if held != needed and not _is_packed(tensor):
            raise InvalidModel(f"{name}: {label} holds {held} numbers, {type_} needs {needed}")
    if fields == ["raw_data"] and not is_apart and tensor.data_type != onnx.TensorProto.STRING:
        held, needed = len(tensor.raw_data), math.ceil(ir.DataType(tensor.data_type).bitwidth * count / 8)
        if held != needed:
            raise InvalidModel(f"{name}: {label} holds {held} bytes, {type_} needs {needed}")


def _type_of(tensor: onnx.TensorProto, culprit: str) -> str:
    if tensor.data_type not in _KNOWN:
        raise InvalidModel(f"{culprit} has an unknown element type: {tensor.data_type}")
    return f"{ir.DataType(tensor.data_type)}[{','.join(map(str, tensor.dims))}]"


def _is_packed(tensor: onnx.TensorProto) -> bool:
    """Whether several elements share a number."""
    return tensor.data_type != onnx.TensorProto.STRING and ir.DataType(tensor.data_type).bitwidth < 8


def _demand_declared_types(graph: onnx.GraphProto, name: str) -> None:
    """That initializers have the types that inputs, outputs and values of their names declare."""
    weights = {tensor.name: tensor for tensor in graph.initializer}
    for info in (*graph.input, *graph.output, *graph.value_info):
        if info.name not in weights or not info.type.HasField("tensor_type"):
            continue
        tensor, declared = weights[info.name], info.type.tensor_type
        sizes = [d.dim_value if d.HasField("dim_value") and d.dim_value >= 0 else None for d in declared.shape.dim]
        fits = len(sizes) == len(tensor.dims) and all(s in (None, d) for s, d in zip(sizes, tensor.dims, strict=True))
        if declared.HasField("shape") and not fits:
            raise InvalidModel(f"{name}: initializer {info.name!r} is {_type_of(tensor, name)}, declared with {sizes}")
        if declared.elem_type not in (onnx.TensorProto.UNDEFINED, tensor.data_type):
            wanted = ir.DataType(declared.elem_type) if declared.elem_type in _KNOWN else declared.elem_type
            raise InvalidModel(f"{name}: initializer {info.name!r} is {_type_of(tensor, name)}, declared as {wanted}")


def _demand_few_calls(proto: onnx.ModelProto, name: str) -> None:
    bodies = {(f.domain, f.name, f.overload): f for f in proto.functions}
    calls = {key: Counter(_called(body.node)) for key, body in bodies.items()}
    nodes: dict[tuple[str, str, str], int] = {}
    try:
        for key in TopologicalSorter(calls).static_order():
            nodes[key] = sum(times * nodes.get(callee, 1) for callee, times in calls.get(key, Counter()).items()) or 1
    except CycleError as error:
        cycle = " → ".join(function for _, function, _ in error.args[1])
        raise InvalidModel(f"{name}: functions call each other: {cycle}") from None
    for key, times in Counter(_called(proto.graph.node)).items():
        if times * nodes.get(key, 1) > MOST_NODES and key in bodies:
            raise InvalidModel(f"{name}: function {key[1]!r} stands for more than {MOST_NODES} nodes")


def put_in_order(graph: onnx.GraphProto) -> bool:
    """Have each node stand behind those that it reads from, in place, and say whether they did: onnxruntime sorts for
    itself, and its conversion to 16 bits puts casts at the end. Nodes that read each other stay where they were.
    """
    made_by = {name: at for at, node in enumerate(graph.node) for name in node.output if name}
    before = {at: {made_by[name] for name in _read(node) if name in made_by} for at, node in enumerate(graph.node)}
    if all(max(read, default=-1) < at for at, read in before.items()):
        return True
    try:
        order = list(TopologicalSorter(before).static_order())
    except CycleError:
        return True
    nodes = list(graph.node)
    del graph.node[:]
    graph.node.extend(nodes[at] for at in order)
    return False


def _read(node: onnx.NodeProto) -> Iterator[str]:
    """What a node reads, and what is read within it that is not made there: other values may have names of these."""
    yield from node.input
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            own = {info.name for info in (*graph.input, *graph.initializer)}
            own |= {sparse.values.name for sparse in graph.sparse_initializer}
            own |= {made for inner in graph.node for made in inner.output}
            read = [output.name for output in graph.output]
            read += [name for inner in graph.node for name in _read(inner)]
            yield from (name for name in read if name not in own)


def _called(nodes: Iterable[onnx.NodeProto]) -> Iterator[tuple[str, str, str]]:
    """The operators of nodes, and of those in their subgraphs."""
    for node in nodes:
        yield node.domain, node.op_type, node.overload
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                yield from _called(graph.node)
