"""Products of functions that are laid out with constants in the same order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np
import onnx_ir as ir

from superopt.dim import Shape
from superopt.onnx_io.new_nodes import NewNodes
from superopt.onnx_io.otherwise.bases.laid import Laid
from superopt.onnx_io.otherwise.bases.layout import TYPE, NotLaidError, Part
from superopt.onnx_io.otherwise.bases.products import Weighed
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import shape_of, sizes_of
from superopt.onnx_io.said import concat_axis, is_a
from superopt.relations import is_one


def product_of(program: Program, term: Weighed, made: NewNodes) -> tuple[ir.Value, Shape, bool]:
    """The product of functions and constants, its shape, and whether functions are written otherwise. Raises
    `NotLaidError`.
    """
    known, values = program.term(term.of), _layers(program, term)
    numbers, functions, last = term.sizes[-3:]
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
    join, rank = term.of.producer(), len(shape_of(program, term.of) or ())
    if not is_a(join, "Concat") or concat_axis(join) not in (0, -rank):
        return []
    values = [v for v in join.inputs if v is not None]
    shapes = [shape_of(program, v) for v in values]
    return values if all(shape is not None and is_one(shape[0]) for shape in shapes) else []


def _ordered(program: Program, made: NewNodes, term: Weighed, axis: int) -> ir.Value:
    """The constants in the order of what they go with."""
    *front, numbers, functions, last = term.order
    order = [*front, functions, numbers, last] if axis == -2 else list(term.order)
    held = made.held(np.ones([term.split[a] for a in order], TYPE))
    if term.weights is not None:
        split = made.reshaped(term.weights, term.split)
        held = made.transposed(split, order)
    for op_type, factor in term.factors:
        shape = shape_of(program, factor)
        pair = (1, 1, *(d for d in shape or () if isinstance(d, int)))[-2:]
        at = (1, *pair) if axis == -2 else (pair[0], 1, pair[1])
        held = made.node(op_type, [held, made.reshaped(factor, at)])
    return held


def _multiplied(
    made: NewNodes, term: Weighed, layers: Sequence[Sequence[Part]], lead: Shape, held: ir.Value, axis: int
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
            which = made.reshaped(which, [numbers * many, last])
            start += many
            if is_held:
                more.append(made.node("MatMul", [made.held(np.full((1, numbers * many), scale, TYPE)), which]))
                continue
            weights.append(which if scale == 1.0 else made.node("Mul", [which, made.held(np.array(scale, TYPE))]))
            flat += [_flat(made, part, (*lead, numbers * part.many)) for part in some]
    result = made.node("MatMul", [made.joined(flat, -1), made.joined(weights, 0)])
    for one in more:
        result = made.node("Add", [result, one])
    return result


def _together(parts: Sequence[Part], axis: int) -> list[list[Part]]:
    """Parts whose constants are one behind the other: those in a row, where the axis of functions is the first."""
    if axis == -1:
        return [[part] for part in parts]
    return [list(group) for _, group in groupby(parts, lambda part: (part.value is None, part.scale))]


def _flat(made: NewNodes, part: Part, shape: Shape) -> ir.Value:
    sizes = sizes_of(part.shape, shape)
    if part.value is None or sizes is None:
        raise NotLaidError
    return made.reshaped(part.value, sizes)


def _some(made: NewNodes, value: ir.Value, start: int, end: int, axis: int, size: int) -> ir.Value:
    """Places along an axis of so many."""
    return value if end - start == size else made.sliced(value, start, end, axis)
