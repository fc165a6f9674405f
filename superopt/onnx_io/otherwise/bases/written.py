"""Sums of functions of numbers, each times a constant, of functions that are laid out so that they take less time."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from itertools import groupby

import numpy as np
import onnx_ir as ir

from superopt.dim import Shape
from superopt.onnx_io.otherwise.bases.laid import Laid
from superopt.onnx_io.otherwise.bases.layout import TYPE, NotLaidError, Part
from superopt.onnx_io.otherwise.bases.products import Sum, Weighed, sum_of
from superopt.onnx_io.otherwise.bases.views import shape_of, sizes_of
from superopt.onnx_io.otherwise.reading import is_a
from superopt.onnx_io.program import Program
from superopt.onnx_io.replacing import Draft, Put
from superopt.onnx_io.said import number
from superopt.onnx_io.skeleton import opset_of
from superopt.onnx_io.surgery import replace_node
from superopt.onnx_io.turns.rows import Nodes
from superopt.relations import equal_shapes, is_one

LEAST_OPSET = 10
"""Before it, slices had their bounds as attributes."""


class _Tried(Nodes):
    """Nodes that are not made, to see whether they could be."""

    def several(
        self, op_type: str, inputs: Sequence[ir.Value | None], attributes: Sequence[ir.Attr] = (), outputs: int = 1
    ) -> Sequence[ir.Value]:
        """Values that nothing gives."""
        return [ir.Value() for _ in range(outputs)]


def bases(program: Program) -> dict[int, Put]:
    """How to sum up functions of numbers, by the places of what does so."""
    opset = opset_of(program.model)
    if opset < LEAST_OPSET:
        return {}
    found: dict[int, Sum] = {}
    for i, node in enumerate(program.model.graph):
        whole = sum_of(program, node)
        if whole is not None and _result(program, whole, _Tried("bases", set(), opset)) is not None:
            found[i] = whole
    return dict.fromkeys(_apart(program, found), partial(_put, program))


def _apart(program: Program, sums: Mapping[int, Sum]) -> list[int]:
    """The sums all of whose functions are computed for nothing but such sums."""
    inner = {i: _inner(program, whole) for i, whole in sums.items()}
    while True:
        own = {v.producer() for values in inner.values() for v in values} | {sums[i].by for i in inner}
        kept = {i: values for i, values in inner.items() if all(_is_read_by(program, v, own) for v in values)}
        if len(kept) == len(inner):
            return list(kept)
        inner = kept


def _inner(program: Program, whole: Sum) -> list[ir.Value]:
    """The values of functions, and those between them and their sum."""
    values, stack = [node.outputs[0] for node in whole.nodes if node is not whole.by], [term.of for term in whole.terms]
    while stack:
        one = stack.pop()
        node, shape = one.producer(), shape_of(program, one)
        if node is None or (one.name or "") in program.constants or not shape or is_one(shape[-1]) or one in values:
            continue
        values.append(one)
        stack.extend(v for v in node.inputs if v is not None)
    return values


def _is_read_by(program: Program, value: ir.Value, nodes: Collection[ir.Node | None]) -> bool:
    """Whether only these nodes read a value, and what reads no more than its sizes."""
    others = {user for user, _ in value.uses() if user not in nodes}
    is_free = all((v.name or "") in program.sizes for user in others for v in user.outputs)
    return is_free and not value.is_graph_output()


def _put(program: Program, draft: Draft, node: ir.Node) -> bool:
    """Sum up functions that are laid out otherwise."""
    whole, opset = sum_of(program, node), opset_of(draft.model)
    if whole is None or _result(program, whole, _Tried("bases", set(), opset)) is None:
        return False  # another has changed it
    made = Nodes("bases", draft.taken, opset)
    result = _result(program, whole, made)
    assert result is not None
    draft.model.graph.insert_before(node, made.nodes)
    replace_node(draft.model, node, [result])
    return True


def _result(program: Program, whole: Sum, made: Nodes) -> ir.Value | None:
    """What a sum is by new nodes; None where functions are none that can be laid out, or are so already."""
    try:
        sums = [_product(program, term, made) for term in whole.terms]
    except NotLaidError:
        return None
    (result, shape, _), *others = sums
    if not any(is_new for *_, is_new in sums) or (to := sizes_of(shape, whole.shape)) is None:
        return None
    for other, *_ in others:
        result = made.node("Add", [result, other])
    if whole.more is not None:
        result = made.node("Add", [result, whole.more])
    if not equal_shapes(shape, whole.shape):
        result = made.node("Reshape", [result, made.integers(to)])
    return result


def _product(program: Program, term: Weighed, made: Nodes) -> tuple[ir.Value, Shape, bool]:
    """The product of functions and constants, its shape, and whether functions are written otherwise."""
    known, values, (numbers, functions, last) = (
        program.values.get(term.of.name or ""),
        _layers(program, term),
        term.sizes[-3:],
    )
    if known is None or known.type.dtype != TYPE or not values:
        raise NotLaidError
    axis = -2 if numbers > functions > 1 else -1
    laid = Laid(program, made, axis)
    layers = [laid.functions(value) for value in values]
    lead = known.shape[term.layers : -2]
    if not any(part.value is not None for parts in layers for part in parts):
        raise NotLaidError
    is_new = axis == -2 or bool(laid.shortened)
    return _multiplied(made, term, layers, lead, _ordered(program, made, term, axis), axis), (*lead, last), is_new


def _layers(program: Program, term: Weighed) -> list[ir.Value]:
    """What is summed up of one behind the other along the first axis; none where that is not told."""
    if not term.layers:
        return [term.of]
    join = term.of.producer()
    if join is None or not is_a(join, "Concat") or number(join, "axis", 0) % len(term.order) != 0:
        return []
    values = [v for v in join.inputs if v is not None]
    shapes = [shape_of(program, v) for v in values]
    return values if all(shape is not None and is_one(shape[0]) for shape in shapes) else []


def _ordered(program: Program, made: Nodes, term: Weighed, axis: int) -> ir.Value:
    """The constants in the order of what they go with."""
    *front, numbers, functions, last = term.order
    order = [*front, functions, numbers, last] if axis == -2 else list(term.order)
    held = made.held(np.ones([term.split[a] for a in order], TYPE))
    if term.weights is not None:
        split = made.node("Reshape", [term.weights, made.integers(term.split)])
        held = made.node("Transpose", [split], [ir.AttrInt64s("perm", order)])
    for op_type, factor in term.factors:
        shape = shape_of(program, factor)
        pair = (1, 1, *(d for d in shape or () if isinstance(d, int)))[-2:]
        at = (1, *pair) if axis == -2 else (pair[0], 1, pair[1])
        held = made.node(op_type, [held, made.node("Reshape", [factor, made.integers(at)])])
    return held


def _multiplied(
    made: Nodes, term: Weighed, layers: Sequence[Sequence[Part]], lead: Shape, held: ir.Value, axis: int
) -> ir.Value:
    """One product of all parts beside each other with their constants, and of functions that are numbers another."""
    numbers, functions, last = term.sizes[-3:]
    flat, weights, more = list[ir.Value](), list[ir.Value](), list[ir.Value]()
    for i, parts in enumerate(layers):
        own = _some(made, held, i, i + 1, 0, term.sizes[0]) if term.layers else held
        start, behind = 0, len(term.order) - (3 if axis == -2 else 2)
        for some in _together(parts, axis):
            is_held, scale = some[0].value is None, some[0].scale
            many = sum(part.many for part in some if isinstance(part.many, int))
            which = _some(made, own, start, start + many, behind, functions)
            which = made.node("Reshape", [which, made.integers([numbers * many, last])])
            start += many
            if is_held:
                more.append(made.node("MatMul", [made.held(np.full((1, numbers * many), scale, TYPE)), which]))
                continue
            weights.append(which if scale == 1.0 else made.node("Mul", [which, made.held(np.array(scale, TYPE))]))
            flat += [_flat(made, part, (*lead, numbers * part.many)) for part in some]
    result = made.node("MatMul", [_joined(made, flat, -1), _joined(made, weights, 0)])
    for one in more:
        result = made.node("Add", [result, one])
    return result


def _together(parts: Sequence[Part], axis: int) -> list[list[Part]]:
    """Parts whose constants are one behind the other: those in a row, where the axis of functions is the first."""
    if axis == -1:
        return [[part] for part in parts]
    return [list(group) for _, group in groupby(parts, lambda part: (part.value is None, part.scale))]


def _flat(made: Nodes, part: Part, shape: Shape) -> ir.Value:
    sizes = sizes_of(part.shape, shape)
    if part.value is None or sizes is None:
        raise NotLaidError
    return made.node("Reshape", [part.value, made.integers(sizes)])


def _some(made: Nodes, value: ir.Value, start: int, end: int, axis: int, size: int) -> ir.Value:
    """Places along an axis of so many."""
    bounds = [made.integers([n]) for n in (start, end, axis)]
    return value if end - start == size else made.node("Slice", [value, *bounds])


def _joined(made: Nodes, values: Sequence[ir.Value], axis: int) -> ir.Value:
    return made.node("Concat", values, [ir.AttrInt64("axis", axis)]) if len(values) > 1 else values[0]
