"""Branches of a model and bodies of its loops, each taken out as a model of its own."""

from __future__ import annotations

from collections.abc import Iterable

import onnx_ir as ir

from superopt.onnx_io.bodies import declare_given, declared_size, given_again, states_of, with_open_sizes
from superopt.onnx_io.choices import Branch
from superopt.onnx_io.naming import deep_values, values, within
from superopt.onnx_io.order import is_read, read_values
from superopt.onnx_io.program import Program
from superopt.onnx_io.skeleton import ONNX_DOMAIN, clone, opset_of
from superopt.onnx_io.surgery import copied
from superopt.onnx_io.tensors import IR_TYPES


def lifted(program: Program, branch: Branch) -> ir.Model | None:
    """A branch as a model: what it reads of the outer one's constants are its weights, and all else its inputs, after
    what a loop gives its turn; what a turn passes on as it is given it is no output. None where that is no tensor, or
    where it computes nothing, or a branch gives what it does not compute. Tensors are shared, the outer model is not
    changed. Raises `InvalidModel` for a body that is no valid model by itself.
    """
    model = clone(program.model)
    holder, graph = list(model.graph)[branch.position], body_of(model, branch)
    for value, given in zip(reversed(graph.outputs), reversed(holder.outputs), strict=False):
        value.type = value.type or given.type  # before these, a Loop's body says whether it goes on
    if branch.is_body:
        if not declare_given(program, holder, graph):
            return None
        states = states_of(holder, graph)
        _compute_all(graph)
    names = captured(program, branch)
    if model.ir_version < 4 or not _computes_all(graph):
        return None
    if any(name not in program.constants and not _is_typed(program, name) for name in names):
        return None
    _hold(program, model, graph, names)
    _without_copies(graph)
    graph.opset_imports.update(model.opset_imports)
    graph.opset_imports.setdefault("", opset_of(model))
    functions = list(model.functions.values())
    found = ir.Model(graph, ir_version=model.ir_version, producer_name="superopt", functions=functions)
    return with_open_sizes(found, states) if branch.is_body else found


def _computes_all(graph: ir.Graph) -> bool:
    """Whether a branch gives something, of which it computes all, and nothing twice; and so do graphs within it, which
    give nothing of an outer one: nodes alone are told what they read instead.
    """
    made, outputs = {v for node in graph for v in node.outputs}, list(graph.outputs)
    if not outputs or len(set(outputs)) < len(outputs) or not made.issuperset(outputs):
        return False
    return all(v.graph is inner for inner in within(graph) for v in inner.outputs)


def _hold(program: Program, model: ir.Model, graph: ir.Graph, names: Iterable[str]) -> None:
    """Have a branch hold outer constants of these names as weights, and be given all others as inputs, in place."""
    outer, own = {v.name: v for v in values(model.graph)}, set(graph.all_nodes())
    for name in names:
        new = _weight(program, outer[name]) if name in program.constants else _input(program, name)
        for node, index in tuple(outer[name].uses()):
            if node in own:
                node.replace_input_with(index, new)
        if name in program.constants:
            graph.register_initializer(new)
        else:
            graph.inputs.append(new)


def _compute_all(graph: ir.Graph) -> None:
    """Have a body compute each of its outputs by a node, and no two by the same, without those that it passes on, in
    place.
    """
    for i in reversed(given_again(graph)):
        value = graph.outputs.pop(i)
        while (node := value.producer()) is not None and not is_read(value):
            (value,) = [v for v in node.inputs if v is not None]
            graph.remove(node, safe=True)
    made = {v for node in graph for v in node.outputs}
    taken = {v.name or "" for v in deep_values(graph)}
    for i, value in enumerate(graph.outputs):
        if value not in made or value in list(graph.outputs)[:i]:
            graph.outputs[i] = copied(graph, value, taken)


def _without_copies(graph: ir.Graph) -> None:
    """Have weights read themselves where copies were, in place: onnxruntime 1.32 fuses some norms whose factor is a
    copy of a weight, drops the copy, and does not load the model then.
    """
    for node in list(graph):
        of = node.inputs[0] if node.op_type == "Identity" and node.domain in ONNX_DOMAIN else None
        if of is not None and of.is_initializer() and not node.outputs[0].is_graph_output():
            node.outputs[0].replace_all_uses_with(of)
            graph.remove(node, safe=True)


def body_of(model: ir.Model, branch: Branch) -> ir.Graph:
    """The graph of a branch in a model."""
    return list(model.graph)[branch.position].attributes[branch.name].as_graph()


def captured(program: Program, branch: Branch) -> list[str]:
    """The outer values that a branch reads, by name, each once."""
    graph = body_of(program.model, branch)
    inner = {v.name for v in values(graph)}
    read = [name for node in graph for name in read_values(node)]
    return [name for name in dict.fromkeys(read) if name not in inner]


def _is_typed(program: Program, name: str) -> bool:
    return name in program.values and program.values[name].type.dtype in IR_TYPES


def _weight(program: Program, value: ir.Value) -> ir.Value:
    tensor = value.const_value if value.is_initializer() else None
    name = value.name or ""
    tensor = tensor or ir.Tensor(program.data(name), name=name)
    return ir.Value(
        name=name, type=ir.TensorType(tensor.dtype), shape=ir.Shape(tensor.shape.numpy()), const_value=tensor
    )


def _input(program: Program, name: str) -> ir.Value:
    term = program.values[name]
    return ir.Value(
        name=name, type=ir.TensorType(IR_TYPES[term.type.dtype]), shape=ir.Shape([declared_size(d) for d in term.shape])
    )
