"""Networks of which some places are computed and never read: those places alone that are read are computed.

A temporal convolutional network (Bai et al. 2018; WaveNet, van den Oord et al. 2016) looks back by convolutions whose
dilation doubles from layer to layer, and what forecasts or classifies reads its last step. For that the last layer
reads a handful of steps that are its dilation apart, the one before it steps half as far apart, and so on: half of what
a layer computes is read by none. A classifier of text, pictures or tables reads the first token that the last layer of
a transformer gives (BERT, Devlin et al. 2019; ViT; FT-Transformer), a recommender the last: that layer needs the keys
and values of all, and nothing else. Residual networks whose first convolution of a stage strides (ResNet, He et al.
2015, as Keras and Gluon have it) compute four times what that reads in the layers before it. And scripts pad on both
sides and cut the one off. Windows stand many layers away from what reads few of them, so this is told by the whole
program: from each reader down to what it needs, and of several readers the fewest places that are evenly apart.
"""

from __future__ import annotations

from functools import partial

import onnx_ir as ir

from superopt.onnx_io.asked_sizes import asks_sizes, sizes_before
from superopt.onnx_io.naming import name_of
from superopt.onnx_io.new_nodes import NewNodes
from superopt.onnx_io.otherwise.unread.cuts import Known, Need, size_of
from superopt.onnx_io.otherwise.unread.evenly import pooled, taken, whole
from superopt.onnx_io.otherwise.unread.kinds import least_needs, needs, written
from superopt.onnx_io.otherwise.unread.paying import DEAREST, pays
from superopt.onnx_io.otherwise.unread.plan import Made, Plan, there
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import shape_of
from superopt.onnx_io.replacing import Draft, Put
from superopt.onnx_io.said import is_a
from superopt.onnx_io.skeleton import opset_of

STEPPED = 10
"""The opset from which on slices have steps."""


def unread(program: Program) -> dict[int, Put]:
    """How to compute what is read alone, by the place of the first node of which that is less."""
    if opset_of(program.model) < STEPPED or not any(is_a(node, *DEAREST) for node in program.model.graph):
        return {}
    plan = _plan(Known(program, program.made))
    return {min(plan.nodes): partial(_put, program, plan)} if pays(program, plan) else {}


def _plan(known: Known) -> Plan:
    """From the last node to the first, what each is to give for those behind it."""
    graph, wanted, nodes = list(known.program.model.graph), dict[str, Need | None](), dict[int, Made]()
    asked = {name_of(node.inputs[0]) for node in graph if asks_sizes(node)}
    for i, node in reversed([*enumerate(graph)]):
        of = _wanted(node, wanted)
        of = None if of is None or of.places == whole(size_of(known.program, node.outputs[0], of.axis) or 0) else of
        read = None if of is None else needs(known, node, of)
        if read is None:
            wanted |= {value.name or "": None for value in node.outputs}
            of, read = None, least_needs(known, node)
        nodes[i] = Made(of, read)
        if asks_sizes(node):
            continue
        for place, value in enumerate(node.inputs):
            if value is not None:
                need = read.get(place)
                is_told = need is None or name_of(value) not in asked or size_of(known.program, value, need.axis)
                _want(wanted, value, need if is_told else None)
    made = {value.name or "" for node in graph for value in node.outputs}
    has = {name: need for name, need in wanted.items() if need is not None and name in made}
    reads = {i: [0] if asks_sizes(graph[i]) else one.read for i, one in nodes.items()}
    kept = {i: one for i, one in nodes.items() if one.of or any(name_of(graph[i].inputs[p]) in has for p in reads[i])}
    return Plan(dict(sorted(kept.items())), has)


def _wanted(node: ir.Node, wanted: dict[str, Need | None]) -> Need | None:
    """The places of what a node gives that are read, of all that it gives; None of all."""
    found: Need | None = None
    for value in node.outputs:
        if value.is_graph_output() or any(use.node.graph is not node.graph for use in value.uses()):
            return None
        if value.uses():
            one = wanted.get(value.name or "")
            if one is None or (found is not None and found.axis != one.axis):
                return None
            found = one if found is None else Need(one.axis, one.places.with_all(found.places))
    if found is not None:
        wanted |= {value.name or "": found for value in node.outputs}
    return found


def _want(wanted: dict[str, Need | None], value: ir.Value, need: Need | None) -> None:
    """Let places of a value be read, beside those that others read."""
    name = value.name or ""
    one = wanted.get(name, need)
    same = one is not None and need is not None and one.axis == need.axis
    wanted[name] = Need(need.axis, one.places.with_all(need.places)) if same and one and need else None


def _put(program: Program, plan: Plan, draft: Draft, _: ir.Node) -> bool:
    """Let each node give what is read of it alone, the first ones first."""
    before, after, known = list(program.model.graph), list(draft.model.graph), Known(program, program.made)
    for i, one in plan.nodes.items():
        node, made = after[i], draft.nodes("read")
        if asks_sizes(node) and (value := node.inputs[0]) is not None:
            sizes = sizes_before(made, value, plan.has[name_of(value)].axis, shape_of(program, value) or ())
            draft.replace(node, made, [sizes])
            continue
        inputs = [_read(program, plan, one, made, place, value) for place, value in enumerate(node.inputs)]
        results = written(known, before[i], one.of, one.read, inputs, made)
        if one.of is not None:
            for old, new in zip(node.outputs, results, strict=True):
                new.type, new.shape = old.type, None
        draft.replace(node, made, results)
    return True


def _read(
    program: Program, plan: Plan, one: Made, made: NewNodes, place: int, value: ir.Value | None
) -> ir.Value | None:
    """What a node reads at a place, without what it does not need."""
    need = one.read.get(place)
    if need is None or value is None:
        return value
    here = there(program, plan, value, need.axis)
    assert here is not None
    assert here.axis == need.axis
    known = program.term(value)
    is_picture = known is not None and known.type.rank == 4 and known.type.dtype == "float32"
    return (pooled if is_picture else taken)(made, value, need.axis, here.places, need.places)
