"""Branches of a model and bodies of its loops put in again, others than they were. What both models read is the outer
one's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx_ir as ir

from superopt.errors import SuperoptError
from superopt.onnx_io.bodies import given_again
from superopt.onnx_io.branches import body_of, captured
from superopt.onnx_io.choices import Branch
from superopt.onnx_io.naming import deep_values, rename, values
from superopt.onnx_io.order import is_read
from superopt.onnx_io.program import Program
from superopt.onnx_io.skeleton import ONNX_DOMAIN, clone, opset_of
from superopt.onnx_io.surgery import bury, let_go

SMALL = 2**16
"""Weights of at most so many bytes stand in each branch that reads them. A convolution whose bias is an outer model's
is not laid out in blocks by onnxruntime 1.32, and a merged decoder gained nothing by what its branch gained 1.15 by.
"""


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
        for domain, version in theirs.opset_imports.items():
            if domain not in ONNX_DOMAIN:
                model.opset_imports.setdefault(domain, version)
        old, own = body_of(model, branch), clone(theirs).graph
        reads, passed = captured(program, branch), given_again(old)
        _demand_fits(old, own, reads, passed)
        before += [v for node in old for v in let_go(node)]
        for value in (*own.inputs, *own.initializers.values()):
            if value.name in reads and not _is_better_inside(value, outer[value.name]):
                value.replace_all_uses_with(outer[value.name])
                own.initializers.pop(value.name, None)
        taken.update(v.name or "" for v in deep_values(own))
        _give_interface(old, own, passed, taken)
        for value in list(deep_values(own)):
            if value.name in outer:
                rename(value, taken)
        nodes[branch.position].attributes[branch.name] = ir.AttrGraph(branch.name, own)
    bury(model, dict.fromkeys(before))
    return model


def _demand_fits(old: ir.Graph, own: ir.Graph, reads: Sequence[str], passed: Mapping[int, int]) -> None:
    """Raise `SuperoptError` where a branch has other inputs or outputs than the old one, which `reads` such values."""
    turn, given = {v.name for v in old.inputs}, {v.name for v in own.inputs}
    if not turn <= given <= turn.union(reads) or len(own.outputs) + len(passed) != len(old.outputs):
        raise SuperoptError("a branch has other inputs or outputs than the original's")


def _give_interface(old: ir.Graph, own: ir.Graph, passed: Mapping[int, int], taken: set[str]) -> None:
    """Give a branch the inputs of the old one in their order, and what that passed on, with their types, in place."""
    given = {v.name: v for v in own.inputs}
    own.inputs.clear()
    own.inputs.extend(given[v.name] for v in old.inputs)
    for i, place in passed.items():
        own.outputs.insert(i, _passing(own, own.inputs[place], old.outputs[i], old, taken))
    for value, declared in zip((*own.inputs, *own.outputs), (*old.inputs, *old.outputs), strict=True):
        value.type, value.shape = declared.type or value.type, declared.shape


def _passing(own: ir.Graph, given: ir.Value, output: ir.Value, old: ir.Graph, taken: set[str]) -> ir.Value:
    """What a body passes on, by the name that it had in the old one where nothing else has that."""
    if output in old.inputs:
        return given
    copy = ir.Node("", "Identity", [given], outputs=[ir.Value(name=output.name)])
    if any(v.name == output.name for v in deep_values(own)):
        rename(copy.outputs[0], taken)
    own.append(copy)
    return copy.outputs[0]


def _is_better_inside(value: ir.Value, outer: ir.Value) -> bool:
    """Whether a weight stands in the branch that reads it: where it is small, or nothing else reads it any more."""
    tensor = value.const_value
    return tensor is not None and (tensor.nbytes <= SMALL or not is_read(outer))
