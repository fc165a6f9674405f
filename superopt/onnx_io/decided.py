"""Models without branches that never run: an If whose condition is known gives way to what runs.

Exporters that do not know a rank or a size write an If for each squeeze, and runtimes decide it when they load the
model, where sizes tell. An If gives what has no known rank, so all that follows it would be opaque.
"""

from __future__ import annotations

from collections import Counter

import onnx_ir as ir

from superopt.errors import InvalidModel
from superopt.onnx_io.choices import BRANCHES, is_if
from superopt.onnx_io.files import load
from superopt.onnx_io.naming import deep_values, rename, values
from superopt.onnx_io.program import Program
from superopt.onnx_io.skeleton import clone
from superopt.onnx_io.surgery import bury, let_go, pass_on


def decided(program: Program) -> ir.Model | None:
    """The model with the branches that run in place of each If of the main graph whose condition is constant, in a
    copy; None where there is none. The interface stays as it is.
    """
    known = {i: found for i, node in enumerate(program.model.graph) if (found := _branch(program, node))}
    if not known:
        return None
    model = clone(program.model)
    counts = Counter(v.name or "" for graph in model.graphs() for v in values(graph))
    ambiguous, taken = {name for name, times in counts.items() if times > 1}, set(counts)
    nodes, read = list(model.graph), list[ir.Value]()
    for position, name in known.items():
        read += _put_in_place(model, nodes[position], nodes[position].attributes[name].as_graph(), ambiguous, taken)
    bury(model, dict.fromkeys(read))
    try:
        return load(model)
    except InvalidModel:
        return None  # a form that is not foreseen; the If is carried through


def _branch(program: Program, node: ir.Node) -> str | None:
    """The attribute of an If that holds the branch that always runs."""
    if not is_if(node) or program.model.ir_version < 4:
        return None
    condition = (node.inputs[0].name if node.inputs[0] is not None else None) or ""
    if condition not in program.constants:
        return None
    try:
        data = program.data(condition)
    except InvalidModel:
        return None
    name = BRANCHES[not data.any()]
    return name if data.size == 1 and _computes_all(node.attributes[name].as_graph()) else None


def _computes_all(body: ir.Graph) -> bool:
    """Whether a branch computes each of its outputs, and none of them twice. onnxruntime 1.32 decides others as well,
    and gives what was in memory.
    """
    made = [v for node in body for v in node.outputs]
    return len({*body.outputs}) == len(body.outputs) and {*made}.issuperset(body.outputs)


def _put_in_place(
    model: ir.Model, node: ir.Node, body: ir.Graph, ambiguous: set[str], taken: set[str]
) -> list[ir.Value]:
    """Put a branch's nodes where its If is; gives what the If read."""
    for value in list(deep_values(body)):
        if value.name in ambiguous:
            rename(value, taken)
    for value in list(body.initializers.values()):
        body.initializers.pop(value.name or "")
        model.graph.register_initializer(value)
    results = list(body.outputs)
    body.outputs.clear()
    moved = list(body)
    body.remove(moved)
    model.graph.insert_before(node, moved)
    read = let_go(node)
    names = [value.name for value in node.outputs]
    for old, new in zip(node.outputs, results, strict=True):
        if old.is_graph_output():
            pass_on(old, new)
        old.replace_all_uses_with(new, replace_graph_outputs=True)
    model.graph.remove(node)
    for name, new in zip(names, results, strict=True):
        new.name = name
    return read
