"""Which opset operators need, and up to which one the nodes of a model mean what they do in its own.

A model's opset rises only where a chosen rewrite needs an operator that came later. What was understood is then written
anew from its terms, where ONNX has changed its form; what was not has to mean the same there, or the opset stays.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping
from functools import cache

import numpy as np
import onnx.defs
import onnx.helper
import onnx_ir as ir

from superopt.onnx_io.program import Program
from superopt.onnx_io.skeleton import ONNX_DOMAIN, opset_of
from superopt.operators import Declared
from superopt.operators.repeats import unwritten
from superopt.term import Term, subterms

SETTLED = 13
"""Before it, attributes that came new could change what a node without them means."""

_OTHERWISE = frozenset({"Softmax", "LogSoftmax", "Hardmax", "RoiAlign", "GroupNormalization", "GridSample", "Upsample"})
"""Operators that came to mean something else under the same form."""

_OF_RUNTIMES = frozenset({"LayerNormalization", "SimplifiedLayerNormalization"})
"""Norms that onnxruntime has in each opset, the same whether ONNX has them there or not."""

_AS_BEFORE = {
    "Cast": ("saturate", "round_mode"),
    "GatherND": ("batch_dims",),
    "Reshape": ("allowzero",),
    "ScatterElements": ("reduction",),
    "ScatterND": ("reduction",),
    "Shape": ("start",),
}
"""Attributes that came new, and without which a node means what it did before they came (of the types that it had)."""

_AXES_GIVEN, _TAKING_AXES = 13, ("ReduceSum", "Squeeze", "Unsqueeze")
"""From it on these take their axes as an input, and a split its parts."""

_BOUNDS_GIVEN = 10
"""From it on a slice takes its bounds so."""

_ALL_AXES_GIVEN = 18
"""From it on all that reduces takes its axes so."""

_PARTS_SAID = 18
"""From it on a split into equal parts says how many."""

_FAST_UP_TO = {"AveragePool": 18}
"""From opset 19 on windows may have gaps, and onnxruntime 1.32 takes 6 to 57 times as long for all of them, but in
blocks of channels: for 25 places along one axis 339 µs instead of 56, for 7 by 7 of 20 channels 4,150 instead of 73.
"""

_MISTAKEN = 10
"""Of this one's slices of symbolic sizes ONNX's inference says that they leave these as they were (onnx 1.23), and so
does onnxruntime (1.32), which lays values out in memory by that: other nodes beside them may fail at other sizes.
"""

_WRITTEN_EVER = ("Expand",)
"""What has another form where there was no such node yet: a Tile."""

_OLDEST_IR = 4
"""Before it, initializers are inputs."""


def takes_axes(op_type: str, opset: int) -> bool:
    """Whether an operator along axes takes these as an input, and has no attribute that says them."""
    return opset >= (_AXES_GIVEN if op_type in _TAKING_AXES else _ALL_AXES_GIVEN)


def takes_parts(opset: int) -> bool:
    """The same of a split and the sizes of its parts."""
    return opset >= _AXES_GIVEN


def takes_bounds(opset: int) -> bool:
    """The same of a slice and where it starts and ends."""
    return opset >= _BOUNDS_GIVEN


def needed_opset(roots: Iterable[Term], given: Container[Term], opset: int) -> int:
    """The least opset from this one on that has all operators of terms; those given exist already."""
    seen, stack = set[Term](), list(roots)
    while stack:
        term = stack.pop()
        if term in seen or term in given or term.is_variable or term.constant:
            continue
        seen.add(term)
        op, repeats = term.operator, unwritten(term)
        stack.extend(i.inputs[0] if i in repeats else i for i in term.inputs)
        if isinstance(op, Declared) and op.onnx is not None and not op.domain and op.onnx not in _WRITTEN_EVER:
            opset = max(opset, _first(op.onnx))
    return opset


def surer_opset(program: Program, changed: Collection[Term], opset: int) -> int:
    """The opset that a model is written in where these terms are new: the next where runtimes would mistake sizes."""
    if opset != _MISTAKEN or not changed or all(term.sized for term in program.values.values()):
        return opset
    nodes = (node.op_type == "Slice" for node in program.model.graph.all_nodes())
    return opset + (any(nodes) or any(term.operator.name == "slice" for term in subterms(*changed)))


def highest_opset(program: Program) -> int:
    """Up to which opset everything that cannot be written anew means what it does in the model's own, and nothing is
    known to take longer.
    """
    model, own = program.model, opset_of(program.model)
    if model.functions or (model.ir_version or 0) < _OLDEST_IR:
        return own
    latest = onnx.defs.onnx_opset_version()
    fast = [_FAST_UP_TO.get(n.op_type, latest) for n in model.graph.all_nodes() if n.domain in ONNX_DOMAIN]
    latest = max(own, min(fast, default=latest))
    written_anew = {id(step.node) for step in program.steps if step.terms}
    fixed = [n for n in model.graph.all_nodes() if id(n) not in written_anew and n.domain in ONNX_DOMAIN]
    kinds = {(n.op_type, len(n.inputs), len(n.outputs), frozenset(n.attributes)): n for n in fixed}
    for opset in range(own + 1, latest + 1):
        if not all(stays(node, own, opset) for node in kinds.values()):  # which looks at nothing else of a node
            return opset - 1
    return latest


def outdated(program: Program, opset: int) -> Mapping[str, Term]:
    """The values of understood nodes that mean something else in an opset, or nothing, each with its term."""
    own = opset_of(program.model)
    steps = [s for s in program.steps if s.terms and not s.node.domain and not stays(s.node, own, opset)]
    return {name: term for step in steps for name, term in zip(step.outputs, step.terms, strict=False)}


def raise_opset(model: ir.Model, opset: int) -> None:
    """Say that a model is of an opset, and of an IR version that knows it; axes become inputs where they do, and splits
    into equal parts say how many these are. All other nodes are somebody else's business.
    """
    if opset_of(model) < _AXES_GIVEN <= opset:
        taken = {v.name for graph in model.graphs() for n in graph for v in n.outputs}
        taken |= {v.name for graph in model.graphs() for v in (*graph.inputs, *graph.initializers.values())}
        for node in list(model.graph.all_nodes()):
            if node.op_type in _TAKING_AXES and node.domain in ONNX_DOMAIN:
                _give_axes(model, node, taken)
    if opset_of(model) < _PARTS_SAID <= opset:
        for node in model.graph.all_nodes():
            if node.op_type == "Split" and node.domain in ONNX_DOMAIN and not any(node.inputs[1:]):
                node.attributes["num_outputs"] = ir.AttrInt64("num_outputs", len(node.outputs))
    domain = "" if "" in model.opset_imports or "ai.onnx" not in model.opset_imports else "ai.onnx"
    model.opset_imports[domain] = opset
    least = onnx.helper.find_min_ir_version_for([onnx.helper.make_opsetid("", opset)], ignore_unknown=True)
    model.ir_version = max(model.ir_version, least)


def _give_axes(model: ir.Model, node: ir.Node, taken: set[str | None]) -> None:
    """Make the axes of a node an input of it, a constant of a name that is not taken, and is then."""
    axes = node.attributes.pop("axes", None)
    if axes is None:
        return
    name = f"{node.outputs[0].name}.axes"
    while name in taken:
        name += "_"
    taken.add(name)
    tensor = ir.Tensor(np.asarray(axes.as_ints(), np.int64), name=name)
    value = ir.Value(name=name, type=ir.TensorType(tensor.dtype), shape=tensor.shape, const_value=tensor)
    model.graph.register_initializer(value)
    node.resize_inputs(2)
    node.replace_input_with(1, value)


def stays(node: ir.Node, old: int, new: int) -> bool:
    """Whether a node of ONNX's own operators, as it stands, means the same in a newer opset."""
    try:
        before, after = (onnx.defs.get_schema(node.op_type, v, "") for v in (old, new))
    except onnx.defs.SchemaError:
        return node.op_type in _OF_RUNTIMES
    if before.since_version == after.since_version:
        return True
    if node.op_type in _TAKING_AXES and old < _AXES_GIVEN <= new:
        return True  # see `raise_opset`
    if after.deprecated or node.op_type in _OTHERWISE:
        return False
    if not after.min_input <= len(node.inputs) <= after.max_input or len(node.outputs) > after.max_output:
        return False
    ours, theirs = _defaults(before), _defaults(after)
    fresh = {n for n, default in theirs.items() if n not in ours and default}
    known = {n: theirs[n] for n in theirs.keys() & ours.keys() | fresh - set(_AS_BEFORE.get(node.op_type, ()))}
    if old < SETTLED and (ours != known or len(before.inputs) != len(after.inputs)):
        return False
    given = set(node.attributes)
    return given <= set(theirs) and all(theirs.get(name, b"") == d for name, d in ours.items() if name not in given)


def _defaults(schema: onnx.defs.OpSchema) -> dict[str, bytes]:
    """The attributes of an operator with their defaults; empty for those that have none."""
    return {name: a.default_value.SerializeToString() for name, a in schema.attributes.items()}


@cache
def _first(op_type: str) -> int:
    """The opset that first had an operator; 1 where there is none of that name."""
    every = onnx.defs.get_all_schemas_with_history()
    return min((s.since_version for s in every if s.name == op_type and not s.domain), default=1)
