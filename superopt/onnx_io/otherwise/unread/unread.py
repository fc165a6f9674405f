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
from typing import NamedTuple

import onnx_ir as ir

from superopt.dim import Shape
from superopt.onnx_io.asked_sizes import asks_sizes, sizes_before
from superopt.onnx_io.naming import name_of
from superopt.onnx_io.new_nodes import NewNodes
from superopt.onnx_io.otherwise.unread.cuts import Known, Need, size_of
from superopt.onnx_io.otherwise.unread.each import PRODUCTS
from superopt.onnx_io.otherwise.unread.evenly import pooled, taken, whole
from superopt.onnx_io.otherwise.unread.kinds import least_needs, needs, written
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import shape_of
from superopt.onnx_io.replacing import Draft, Put
from superopt.onnx_io.said import is_a, number
from superopt.onnx_io.skeleton import opset_of
from superopt.substitution import TYPICAL, elements

LEAST, DEAR = 2**16, 16
"""So many products have to be spared, as many for each node that takes something out, and so many for each element that
it copies.
"""

DEAREST = ("Conv", *PRODUCTS)
"""What multiplies so often that it is worth it."""

OPEN = 2**31
"""As many places as there are at most along an axis whose size is not known."""

STEPPED = 10
"""The opset from which on slices have steps."""


class Made(NamedTuple):
    """A node of which some places are read, or all as None says, and what it reads for them."""

    of: Need | None
    read: dict[int, Need]


class Plan(NamedTuple):
    """What nodes are to give, by their places, and which places values have then, by their names."""

    nodes: dict[int, Made]
    has: dict[str, Need]


def unread(program: Program) -> dict[int, Put]:
    """How to compute what is read alone, by the place of the first node of which that is less."""
    if opset_of(program.model) < STEPPED or not any(is_a(node, *DEAREST) for node in program.model.graph):
        return {}
    plan = _plan(Known(program, program.made))
    return {min(plan.nodes): partial(_put, program, plan)} if _pays(program, plan) else {}


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


def _pays(program: Program, plan: Plan) -> bool:
    """Whether enough products are spared for what is copied."""
    each, spared, cost = list(program.model.graph), 0.0, float(LEAST)
    for i, (of, read) in plan.nodes.items():
        node = each[i]
        given = shape_of(program, node.outputs[0])
        if of is not None and given is not None and is_a(node, *DEAREST):
            spared += (_at(given, of, every=True) - _at(given, of)) * _each(program, node)
        for place, need in read.items():
            shape = shape_of(program, node.inputs[place])
            if shape is not None and _there(program, plan, node.inputs[place], need.axis) != need:
                cost += LEAST + DEAR * _at(shape, need)
    return spared >= cost


def _each(program: Program, node: ir.Node) -> int:
    """How often a node multiplies for an element of what it gives."""
    if is_a(node, "Einsum"):
        return 1  # at least
    first, second = (shape_of(program, value) or () for value in node.inputs[:2])
    columns = first[:1] if is_a(node, "Gemm") and number(node, "transA", 0) else first[-1:]
    return elements(second[1:] if is_a(node, "Conv") else columns)


def _at(shape: Shape, need: Need, every: bool = False) -> int:
    """How many elements a value has at some places, or at `every` one."""
    size, others = shape[need.axis], (*shape[: need.axis], *shape[need.axis + 1 :])
    known = size if isinstance(size, int) else TYPICAL
    return elements(others) * (known if every else need.places.many)


def _there(program: Program, plan: Plan, value: ir.Value | None, axis: int) -> Need | None:
    """The places that a value has along an axis once it is made as planned; None where nothing is known of it."""
    made, shape = plan.has.get(name_of(value)), shape_of(program, value)
    size = None if shape is None else shape[axis]
    return made if made or size is None else Need(axis, whole(size if isinstance(size, int) else OPEN))


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
    there = _there(program, plan, value, need.axis)
    assert there is not None
    assert there.axis == need.axis
    known = program.term(value)
    is_picture = known is not None and known.type.rank == 4 and known.type.dtype == "float32"
    return (pooled if is_picture else taken)(made, value, need.axis, there.places, need.places)
