"""Models without branches that never run: an If whose condition is known gives way to what runs.

Exporters that do not know a rank or a size write an If for each squeeze, and runtimes decide it when they load the
model, where sizes tell. An If gives what has no known rank, so all that follows it would be opaque.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container
from functools import partial

import onnx_ir as ir

from superopt.errors import InvalidModel
from superopt.onnx_io.choices import BRANCHES, is_if
from superopt.onnx_io.naming import deep_values, rename
from superopt.onnx_io.program import Program
from superopt.onnx_io.replacing import Draft, replaced
from superopt.onnx_io.surgery import replace_node


def decided(program: Program) -> ir.Model | None:
    """The model with the branches that run in place of each If of the main graph whose condition is constant, in a
    copy; None where there is none. The interface stays as it is.
    """
    known = {i: name for i, node in enumerate(program.model.graph) if (name := _branch(program, node))}
    counts = Counter(v.name or "" for v in deep_values(program.model.graph)) if known else Counter[str]()
    ambiguous = {name for name, times in counts.items() if times > 1}
    return replaced(program.model, {i: partial(_put_in_place, name, ambiguous) for i, name in known.items()})


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


def _put_in_place(name: str, ambiguous: Container[str | None], draft: Draft, node: ir.Node) -> bool:
    """Put the nodes of the branch of this name where its If is."""
    model, body = draft.model, node.attributes[name].as_graph()
    for value in list(deep_values(body)):
        if value.name in ambiguous:
            rename(value, draft.taken)
    for value in list(body.initializers.values()):
        body.initializers.pop(value.name or "")
        model.graph.register_initializer(value)
    results = list(body.outputs)
    body.outputs.clear()
    moved = list(body)
    body.remove(moved)
    model.graph.insert_before(node, moved)
    replace_node(model, node, results)
    return True
