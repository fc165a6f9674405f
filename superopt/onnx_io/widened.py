"""Models of 16-bit floats as a runtime without kernels for these computes them: in 32 bits.

On x86 onnxruntime puts a cast before and behind each node of 16-bit floats, and takes out what casts back and forth:
only what is given and what comes out has 16 bits there. Weights of 16 bits are cast once, when a session is made. So a
model with these casts written down takes as long or less, differs by no more than roundings to 16 bits, and its nodes
are those that rules are about.
"""

from __future__ import annotations

from collections.abc import Container

import onnx_ir as ir

from superopt.errors import InvalidModel
from superopt.onnx_io.files import load
from superopt.onnx_io.inlining import inlined
from superopt.onnx_io.naming import deep_values
from superopt.onnx_io.said import number
from superopt.onnx_io.skeleton import all_nodes
from superopt.onnx_io.surgery import pass_on
from superopt.onnx_io.tensors import tensors

HALF, FLOAT = ir.DataType.FLOAT16, ir.DataType.FLOAT

DOMAINS = frozenset(["", "ai.onnx", "ai.onnx.ml", "com.microsoft"])
"""Whose operators take 32 bits wherever they take 16."""

NAMES_A_TYPE = frozenset(
    ["to", "dtype", "output_dtype", "output_datatype", "stash_type", "softmax_precision", "precision"]
)
"""Attributes that hold an element type."""

_OF_BITS = frozenset(["BitCast"])
"""What depends on how elements are stored; so do the digits of what is cast to a string."""


def widened(model: ir.Model) -> ir.Model | None:
    """The model with its 16-bit floats computed in 32 bits, in a copy; None where nothing is computed in 16 bits, or
    where that cannot be told apart. Inputs, outputs, names and weights stay as they are: casts stand behind them.
    """
    if not _computes_in_half(model):
        return None
    copy = load(inlined(model))
    if copy.functions or not _can_be(copy):
        return None
    halves = {name for name, tensor in tensors(copy).items() if tensor.dtype == "float16"}
    taken = {v.name or "" for v in deep_values(copy.graph)}
    sources = dict.fromkeys(_sources(copy))
    ends = [v for v in copy.graph.outputs if _is_half(v) and v not in sources]
    for node in list(all_nodes(copy)):
        _widen(node, halves)
    for value in deep_values(copy.graph):
        if _holds_half(value):
            value.type = None  # as inference has it
        elif _is_half(value) and value not in sources:
            value.type = ir.TensorType(FLOAT)
    for value in sources:
        _cast_behind(value, copy.graph, taken)
    for value in dict.fromkeys(ends):
        _cast_before(copy.graph, value, taken)
    try:
        return load(copy)
    except InvalidModel:
        return None  # a form that is not foreseen; what computes in 16 bits is carried through


def is_rounding(node: ir.Node) -> bool:
    """Whether a node gives what it reads in 16 bits."""
    return node.op_type == "Cast" and number(node, "to", 0) == HALF


def _computes_in_half(model: ir.Model) -> bool:
    if not any(v.dtype == HALF for v in deep_values(model.graph)) and not any(map(_names_half, all_nodes(model))):
        return False  # as most models, whose sizes need not be inferred for that
    known = {name for name, tensor in tensors(model).items() if tensor.dtype == "float16"}
    return any(v.name in known for node in model.graph if node.op_type != "Cast" for v in node.outputs)


def _names_half(node: ir.Node) -> bool:
    return any(_tensor(node, name) is not None or _is_named_half(a) for name, a in node.attributes.items())


def _is_named_half(attribute: ir.Attr) -> bool:
    is_type = attribute.name in NAMES_A_TYPE and attribute.type == ir.AttributeType.INT
    return is_type and not attribute.is_ref() and attribute.as_int() == HALF


def _can_be(model: ir.Model) -> bool:
    """Whether what is given and comes out in 16 bits are tensors, and all nodes are of operators that take 32 bits as
    well.
    """
    ends = [*model.graph.inputs, *model.graph.outputs]
    if model.ir_version < 4 or any(_holds_half(v) for v in ends):
        return False
    nodes = list(all_nodes(model))
    if any("sparse_value" in node.attributes for node in nodes):
        return False
    return all(node.domain in DOMAINS and not _is_of_bits(node) for node in nodes)


def _is_of_bits(node: ir.Node) -> bool:
    return node.op_type in _OF_BITS or (node.op_type == "Cast" and number(node, "to", 0) == ir.DataType.STRING)


def _holds_half(value: ir.Value) -> bool:
    """Whether a value is a sequence or the like of tensors of 16 bits."""
    return value.type is not None and not isinstance(value.type, ir.TensorType) and value.dtype == HALF


def _is_half(value: ir.Value) -> bool:
    return value.dtype == HALF and isinstance(value.type, ir.TensorType)


def _sources(model: ir.Model) -> list[ir.Value]:
    """The 16-bit floats that are not computed: inputs, weights and what Constant nodes hold."""
    found = [v for v in model.graph.inputs if _is_half(v)]
    for graph in model.graphs():
        found += [v for v in graph.initializers.values() if _is_half(v) and not v.is_graph_input()]
    held = [n for n in all_nodes(model) if n.op_type == "Constant" and _tensor(n, "value") is not None]
    for node in held:
        node.outputs[0].type = ir.TensorType(HALF)
    return found + [n.outputs[0] for n in held]


def _tensor(node: ir.Node, name: str) -> ir.TensorProtocol | None:
    """An attribute that is a tensor of 16-bit floats."""
    attribute = node.attributes.get(name)
    if attribute is None or attribute.is_ref() or attribute.type != ir.AttributeType.TENSOR:
        return None
    return attribute.as_tensor() if attribute.as_tensor().dtype == HALF else None


def _widen(node: ir.Node, halves: Container[str | None]) -> None:
    """Make a node's attributes say 32 bits, in place; of a cast between the two nothing is left."""
    if node.op_type == "Constant":
        return
    for name, attribute in list(node.attributes.items()):
        tensor = _tensor(node, name)
        if tensor is not None:
            node.attributes[name] = ir.AttrTensor(name, ir.tensor(tensor.numpy().astype("float32")))
        elif _is_named_half(attribute):
            node.attributes[name] = ir.AttrInt64(name, FLOAT)
    source = node.inputs[0] if node.op_type == "Cast" else None
    if source is not None and number(node, "to", 0) == FLOAT and (source.name in halves or source.dtype == FLOAT):
        node.op_type = "Identity"
        node.attributes.clear()


def _cast(value: ir.Value, to: ir.DataType, name: str) -> ir.Node:
    node = ir.Node("", "Cast", [value], [ir.AttrInt64("to", to)])
    node.outputs[0].name, node.outputs[0].type, node.outputs[0].shape = name, ir.TensorType(to), value.shape
    return node


def _fresh(name: str, taken: set[str]) -> str:
    found, number = f"{name}_float32", 1
    while found in taken:
        number += 1
        found = f"{name}_float32_{number}"
    taken.add(found)
    return found


def _cast_behind(value: ir.Value, main: ir.Graph, taken: set[str]) -> None:
    """Have all that reads a value read its cast to 32 bits, and a subgraph that gives it give that."""
    uses, producer, graph = list(value.uses()), value.producer(), value.graph
    given = [] if graph is None or graph is main else [i for i, v in enumerate(graph.outputs) if v is value]
    if graph is None or not (uses or given):
        return
    node = _cast(value, FLOAT, _fresh(value.name or "", taken))
    for use in uses:
        use.node.replace_input_with(use.idx, node.outputs[0])
    for i in given:
        graph.outputs[i] = node.outputs[0]
    if producer is not None:
        graph.insert_after(producer, node)
    elif len(graph):
        graph.insert_before(graph[0], node)
    else:
        graph.append(node)


def _cast_before(graph: ir.Graph, value: ir.Value, taken: set[str]) -> None:
    """Have an output be a cast of what it was."""
    node = _cast(value, HALF, value.name or "")
    pass_on(value, node.outputs[0])
    node.outputs[0].type = ir.TensorType(HALF)
    value.name = _fresh(value.name or "", taken)
    graph.append(node)
    for i, output in enumerate(graph.outputs):
        if output is value:
            graph.outputs[i] = node.outputs[0]
