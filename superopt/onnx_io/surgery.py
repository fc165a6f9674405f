"""Changes to the graph of a model that is a copy: outputs swapped, nodes replaced, initializers put in, and dead nodes
buried.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import onnx_ir as ir

from superopt.onnx_io.naming import rename
from superopt.onnx_io.order import is_read
from superopt.onnx_io.skeleton import subgraphs
from superopt.onnx_io.writer import TermWriter


def swap_outputs(
    graph: ir.Graph, old: Mapping[str, ir.Value], new: Mapping[str, ir.Value], writer: TermWriter
) -> dict[str, ir.Value]:
    """Make new values the graph's outputs where old ones are, and give the values that take over an old name.

    A value that has a name to keep (an input, a weight, an original value, another output) is copied by an Identity.
    """
    made = {output for node in writer.nodes for output in node.outputs}
    taking: dict[str, ir.Value] = {}
    # Outputs first: an inner value that is one of them needs no name of its own.
    for name in sorted(new, key=lambda n: not old[n].is_graph_output()):
        value, is_output = new[name], old[name].is_graph_output()
        free = value in made and value not in taking.values()
        if not free and not is_output:
            continue
        if not free:
            value = _identity(graph, value, writer)
        taking[name] = value
        pass_on(old[name], value)
    for i, output in enumerate(graph.outputs):
        name = output.name or ""
        if output is old.get(name):
            graph.outputs[i] = taking[name]
    return taking


def pass_on(old: ir.Value, new: ir.Value) -> None:
    """Declare of a value what was declared of the one that it takes the place of."""
    new.type, new.shape, new.doc_string = old.type, old.shape, old.doc_string
    new.metadata_props.update(old.metadata_props)
    new.meta.update(old.meta)


def replace_node(model: ir.Model, node: ir.Node, results: Sequence[ir.Value]) -> None:
    """Let values be what a node gives, by the same names, or copies of them where the model's interface or a weight has
    these; the node goes, and all that only it needed. What is declared of a value already stays, unless it is an output
    now.
    """
    results = [_copy(model.graph, node, v) if _has_own_name(v) else v for v in results]
    read, names = let_go(node), [value.name for value in node.outputs]
    for old, new in zip(node.outputs, results, strict=True):
        if new.type is None or old.is_graph_output():
            pass_on(old, new)
        old.replace_all_uses_with(new, replace_graph_outputs=True)
    model.graph.remove(node)
    for name, new in zip(names, results, strict=True):
        new.name = name
    bury(model, dict.fromkeys(read))


def _has_own_name(value: ir.Value) -> bool:
    return value.is_graph_input() or value.is_initializer() or value.is_graph_output()


def _copy(graph: ir.Graph, before: ir.Node, value: ir.Value) -> ir.Value:
    copy = ir.Node("", "Identity", [value])
    graph.insert_before(before, copy)
    copy.name = None  # the graph has given it one
    return copy.outputs[0]


def output_of(body: ir.Graph, value: ir.Value, others: Collection[ir.Value], taken: set[str]) -> ir.Value:
    """What a body can give beside others that is a value: that, or a copy of one that it is given or gives already."""
    if value not in body.inputs and value not in others and value.graph is body and not value.is_initializer():
        return value
    return copied(body, value, taken)


def copied(body: ir.Graph, value: ir.Value, taken: set[str]) -> ir.Value:
    """A copy of a value that a body computes last, by a name of its own."""
    copy = ir.Node("", "Identity", [value])
    copy.outputs[0].name, copy.outputs[0].type = value.name, value.type
    rename(copy.outputs[0], taken)
    body.append(copy)
    copy.name = None  # the graph has given it one
    return copy.outputs[0]


def _identity(graph: ir.Graph, value: ir.Value, writer: TermWriter) -> ir.Value:
    name = writer.fresh("identity")
    node = ir.Node("", "Identity", [value], name=name)
    node.outputs[0].name = name
    graph.append(node)
    return node.outputs[0]


def sort(graph: ir.Graph) -> None:
    """Bring the nodes into topological order, in place. Raises `ValueError` for a cycle."""
    unnamed = [node for node in graph.all_nodes() if node.name is None]
    graph.sort()
    for node in unnamed:  # sorting gave them names
        node.name = None


def put(model: ir.Model, initializers: Iterable[ir.Value]) -> None:
    """Add initializers that something reads; before IR 4 each must be an input too, so the new ones follow the old."""
    for value in initializers:
        if value.uses():
            model.graph.register_initializer(value)
            if model.ir_version < 4:
                model.graph.inputs.append(value)


def bury(model: ir.Model, values: Iterable[ir.Value]) -> None:
    """Remove the nodes of values that nothing reads, and all that only they needed; what was dead before stays."""
    graph = model.graph
    stack = list(values)
    while stack:
        value = stack.pop()
        node = value.producer()
        if is_read(value):
            continue
        if node is None:
            _bury_initializer(model, value)
        elif node.graph is graph and not any(map(is_read, node.outputs)):
            stack.extend(let_go(node))
            graph.remove(node)


def inherit(node: ir.Node | None, old: ir.Node | None) -> None:
    """Where the same operator computes a value as before and the old node is gone, keep its name and what it said."""
    if node is None or old is None or old.graph is not None:
        return
    if (node.op_type, node.domain, len(node.outputs)) != (old.op_type, old.domain, len(old.outputs)):
        return
    node.name, node.doc_string = old.name, old.doc_string
    node.metadata_props.update(old.metadata_props)


def _bury_initializer(model: ir.Model, value: ir.Value) -> None:
    """An initializer that is an input is part of the interface, but not before IR 4, where each has to be one."""
    graph, name = model.graph, value.name
    if not value.is_initializer() or name is None or graph.initializers.get(name) is not value:
        return
    if value.is_graph_input() and model.ir_version >= 4:
        return
    graph.initializers.pop(name)
    if value.is_graph_input():
        graph.inputs.remove(value)


def let_go(node: ir.Node) -> list[ir.Value]:
    """Make a node, and the nodes in its subgraphs, read nothing; gives what they read."""
    read = [v for v in node.inputs if v is not None]
    for i in range(len(node.inputs)):
        node.replace_input_with(i, None)
    for graph in subgraphs(node):
        for inner in graph:
            read.extend(let_go(inner))
    return read
