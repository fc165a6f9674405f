"""Branches of a model and bodies of its loops, each taken out as a model of its own, and put in again. What both models
read is the outer one's.
"""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from superopt.errors import SuperoptError
from superopt.onnx_io.bodies import declare_given, passed_on, states_of, text, with_open_sizes
from superopt.onnx_io.choices import Branch
from superopt.onnx_io.naming import deep_values, rename, values, within
from superopt.onnx_io.order import read_values
from superopt.onnx_io.program import Program
from superopt.onnx_io.skeleton import ONNX_DOMAIN, clone, opset_of
from superopt.onnx_io.surgery import bury, let_go
from superopt.onnx_io.tensors import IR_TYPES

SMALL = 2**16
"""Weights of at most so many bytes stand in each branch that reads them. A convolution whose bias is an outer model's
is not laid out in blocks by onnxruntime 1.32, and a merged decoder gained nothing by what its branch gained 1.15 by.
"""


def lifted(program: Program, branch: Branch) -> ir.Model | None:
    """A branch as a model: what it reads of the outer one's constants are its weights, and all else its inputs, after
    what a loop gives its turn; what a turn passes on as it is given it is no output. None where that is no tensor, or
    where it computes nothing, or a branch gives what it does not compute. Tensors are shared, the outer model is not
    changed.
    """
    model = clone(program.model)
    holder, graph = list(model.graph)[branch.position], _body(model, branch)
    for value, given in zip(reversed(graph.outputs), reversed(holder.outputs), strict=False):
        value.type = value.type or given.type  # before these, a Loop's body says whether it goes on
    if branch.is_body:
        if not declare_given(program, holder, graph):
            return None
        states = states_of(holder, graph)
        _compute_all(graph)
    made = {id(v) for node in graph for v in node.outputs}
    outputs = [id(v) for v in graph.outputs]
    if not outputs or model.ir_version < 4 or len(set(outputs)) < len(outputs) or not made.issuperset(outputs):
        return None
    if any(v.graph is not inner for inner in within(graph) for v in inner.outputs):
        return None  # nodes alone are told what they read instead
    names = captured(program, branch)
    if any(name not in program.constants and not _is_typed(program, name) for name in names):
        return None
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
    _without_copies(graph)
    graph.opset_imports.update(model.opset_imports)
    graph.opset_imports.setdefault("", opset_of(model))
    functions = list(model.functions.values())
    found = ir.Model(graph, ir_version=model.ir_version, producer_name="superopt", functions=functions)
    return with_open_sizes(found, states) if branch.is_body else found


def _compute_all(graph: ir.Graph) -> None:
    """Have a body compute each of its outputs by a node, and no two by the same, without those that it passes on, in
    place.
    """
    for i in reversed(passed_on(graph)):
        value = graph.outputs.pop(i)
        while (node := value.producer()) is not None and not (value.uses() or value.is_graph_output()):
            (value,) = [v for v in node.inputs if v is not None]
            graph.remove(node, safe=True)
    made = {v for node in graph for v in node.outputs}
    for i, value in enumerate(graph.outputs):
        if value not in made or value in list(graph.outputs)[:i]:
            copy = ir.Node("", "Identity", [value], name=None)
            copy.outputs[0].name, copy.outputs[0].type = f"{value.name} {i}", value.type
            graph.append(copy)
            copy.name = None
            graph.outputs[i] = copy.outputs[0]


def _without_copies(graph: ir.Graph) -> None:
    """Have weights read themselves where copies were, in place: onnxruntime 1.32 fuses some norms whose factor is a
    copy of a weight, drops the copy, and does not load the model then.
    """
    for node in list(graph):
        of = node.inputs[0] if node.op_type == "Identity" and node.domain in ONNX_DOMAIN else None
        if of is not None and of.is_initializer() and not node.outputs[0].is_graph_output():
            node.outputs[0].replace_all_uses_with(of)
            graph.remove(node, safe=True)


def _body(model: ir.Model, branch: Branch) -> ir.Graph:
    return list(model.graph)[branch.position].attributes[branch.name].as_graph()


def captured(program: Program, branch: Branch) -> list[str]:
    """The outer values that a branch reads, by name, each once."""
    graph = _body(program.model, branch)
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
        name=name, type=ir.TensorType(IR_TYPES[term.type.dtype]), shape=ir.Shape([text(d) for d in term.shape])
    )


def spliced(program: Program, new: Mapping[Branch, ir.Model]) -> ir.Model:
    """The model with other branches, each a model such as `lifted` gives, of the same inputs and outputs. Weights that
    are not the outer model's stand in the branch: runtimes lay out only what they find beside the nodes that read it.
    The models are not changed.

    Raises `SuperoptError` where a branch has another opset or inputs than it may.
    """
    model = clone(program.model)
    nodes, outer = list(model.graph), {v.name: v for v in values(model.graph)}
    taken = {v.name or "" for graph in model.graphs() for v in values(graph)}
    before: list[ir.Value] = []
    for branch, theirs in new.items():
        if opset_of(theirs) != opset_of(model):
            raise SuperoptError(f"a branch is of opset {opset_of(theirs)}, the model of {opset_of(model)}")
        old, own = _body(model, branch), clone(theirs).graph
        reads, turn = set(captured(program, branch)), [v.name for v in old.inputs]
        given = {v.name: v for v in own.inputs}
        passed = passed_on(old)
        fits = set(turn) <= set(given) <= reads.union(turn)
        if not fits or len(own.outputs) + len(passed) != len(old.outputs):
            raise SuperoptError("a branch has other inputs or outputs than the original's")
        before += [v for node in old for v in let_go(node)]
        for value in (*own.inputs, *own.initializers.values()):
            if value.name in reads and not _is_better_inside(value, outer[value.name]):
                value.replace_all_uses_with(outer[value.name])
                own.initializers.pop(value.name, None)
        own.inputs.clear()
        own.inputs.extend(given[name] for name in turn)
        for i, place in passed.items():
            own.outputs.insert(i, _passing(own, own.inputs[place], old.outputs[i], old))
        for value, declared in zip((*own.inputs, *own.outputs), (*old.inputs, *old.outputs), strict=True):
            value.type, value.shape = declared.type or value.type, declared.shape
        for value in list(deep_values(own)):
            if value.name in outer:
                rename(value, taken)
        nodes[branch.position].attributes[branch.name] = ir.AttrGraph(branch.name, own)
    bury(model, dict.fromkeys(before))
    return model


def _passing(own: ir.Graph, given: ir.Value, output: ir.Value, old: ir.Graph) -> ir.Value:
    """What a body passes on by the name that it had in the old one."""
    if output in old.inputs:
        return given
    copy = ir.Node("", "Identity", [given], outputs=[ir.Value(name=output.name)])
    own.append(copy)
    return copy.outputs[0]


def _is_better_inside(value: ir.Value, outer: ir.Value) -> bool:
    """Whether a weight stands in the branch that reads it: where it is small, or nothing else reads it any more."""
    tensor = value.const_value
    return tensor is not None and (tensor.nbytes <= SMALL or not (outer.uses() or outer.is_graph_output()))
