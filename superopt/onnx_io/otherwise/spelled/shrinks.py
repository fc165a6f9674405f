"""Soft thresholds, as what is left of a value without what lies between two bounds: `x - clip(x, -t, t)`.

Networks that unfold iterations (LISTA, Gregor and LeCun 2010; ISTA-Net), shrinkage networks and AFNO (FourCastNet) set
to 0 what is small and move the rest towards it. Scripts write `sign(x)·relu(|x| - t)` or `relu(x - t) - relu(-x - t)`,
and of `softshrink` torch's exporters make two choices, or a choice, a sign and three products. onnxruntime 1.32 takes 2
to 30 times as long for these, and for its own Shrink, as for two operators; all round alike.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from superopt.arithmetic.carrier import Array
from superopt.onnx_io.new_nodes import NewNodes
from superopt.onnx_io.otherwise.spelled.steps import Led, beside, is_of_numbers, is_wide
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import BOUNDS_GIVEN, data_of, shape_of
from superopt.onnx_io.replacing import Draft, Put, of_nodes
from superopt.onnx_io.said import input_of, is_a, real
from superopt.onnx_io.skeleton import opset_of
from superopt.substitution import elements

FEW = 2**10
"""Of fewer elements a Shrink takes as long as two operators."""


class Shrunk(NamedTuple):
    """A value that is moved towards 0 by thresholds."""

    by: Array
    of: Led


def shrinks(program: Program) -> dict[int, Put]:
    """How to write soft thresholds, by the places of their last steps."""
    if opset_of(program.model) < BOUNDS_GIVEN:
        return {}
    return {place: partial(_put, shrunk) for place, shrunk in of_nodes(program, partial(_shrunk, program)).items()}


def _shrunk(program: Program, node: ir.Node) -> Shrunk | None:
    if not is_a(node, *_READ) or not is_wide(program, node.outputs[0], "float32"):
        return None
    found = _READ[node.op_type](program, node)
    if found is None or not found.by.size or not bool((found.by >= 0).all()) or not np.isfinite(found.by).all():
        return None
    x = found.of.of(node)
    if x is None or shape_of(program, x) != shape_of(program, node.outputs[0]):
        return None
    return found if not is_a(node, *_CHOOSES) or is_of_numbers(program, x) else None


def _of_operator(program: Program, node: ir.Node) -> Shrunk | None:
    limit, shape = real(node, "lambd", 0.5), shape_of(program, node.outputs[0])
    if real(node, "bias", 0.0) != limit or shape is None or elements(shape) < FEW:
        return None
    return _found(np.array(limit, np.float32), node.inputs[0], 0)


def _of_sign(program: Program, node: ir.Node) -> Shrunk | None:
    """`sign(x)·relu(|x| - t)`."""
    for place in (0, 1):
        sign, relu = _step(node, place, "Sign"), _step(node, 1 - place, "Relu")
        less = _step(relu, 0, "Sub")
        size = _step(less, 0, "Abs")
        by = None if less is None else data_of(program, less.inputs[1])
        if sign is not None and size is not None and by is not None and size.inputs[0] is sign.inputs[0]:
            return _found(by, sign.inputs[0], place, 0)
    return None


def _of_parts(program: Program, node: ir.Node) -> Shrunk | None:
    """`relu(x - t) - relu(-x - t)`."""
    above, below = (_step(_step(node, place, "Relu"), 0, "Sub") for place in (0, 1))
    negative = _step(below, 0, "Neg")
    if above is None or below is None or negative is None or negative.inputs[0] is not above.inputs[0]:
        return None
    one, other = (data_of(program, step.inputs[1]) for step in (above, below))
    same = one is not None and other is not None and np.array_equal(one, other)
    return _found(one, above.inputs[0], 0, 0, 0) if same else None


def _of_choice(program: Program, node: ir.Node) -> Shrunk | None:
    """`where(|x| > t, x - t·sign(x), 0·x)`."""
    is_large, moved = _step(node, 0, "Greater"), _step(node, 1, "Sub")
    size, way = _step(is_large, 0, "Abs"), beside(program, _step(moved, 1, "Mul"), "Mul")
    limit, nothing = beside(program, is_large, "Greater"), beside(program, _step(node, 2, "Mul"), "Mul")
    if size is None or moved is None or way is None or limit is None or limit.place:
        return None
    (x,), sign = size.inputs, way.value.producer()
    is_moved = moved.inputs[0] is x and is_a(sign, "Sign") and sign.inputs[0] is x and way.number == limit.number
    is_nothing = nothing is not None and nothing.value is x and not nothing.number
    return _found(np.array(limit.number, np.float32), x, 1, 0) if is_moved and is_nothing else None


def _of_choices(program: Program, node: ir.Node) -> Shrunk | None:
    """`where(x > t, x - t, 0) + where(x < -t, x + t, 0)`."""
    for place in (0, 1):
        above, below = _step(node, place, "Where"), _step(node, 1 - place, "Where")
        high, low = (beside(program, _step(w, 0, op), op) for w, op in ((above, "Greater"), (below, "Less")))
        down, up = (beside(program, _step(w, 1, op), op) for w, op in ((above, "Sub"), (below, "Add")))
        if high is None or low is None or down is None or up is None or high.place or low.place or down.place:
            continue
        rests = [data_of(program, input_of(w, 2)) for w in (above, below) if w is not None]
        is_same = all(one.value is high.value for one in (low, down, up))
        if is_same and high.number == -low.number == down.number == up.number and not any(map(_is_there, rests)):
            return _found(np.array(high.number, np.float32), high.value, place, 1, down.place)
    return None


def _is_there(rest: Array | None) -> bool:
    return rest is None or bool(rest.any())


_CHOOSES = ("Add", "Shrink")
"""What makes 0 of what is no number."""

_READ = {"Shrink": _of_operator, "Mul": _of_sign, "Sub": _of_parts, "Where": _of_choice, "Add": _of_choices}


def _step(node: ir.Node | None, place: int, op_type: str) -> ir.Node | None:
    """What computes an input of a node, if it is of an operator."""
    value = None if node is None else input_of(node, place)
    step = None if value is None else value.producer()
    return step if is_a(step, op_type) else None


def _found(by: Array | None, x: ir.Value | None, *path: int) -> Shrunk | None:
    return None if x is None or by is None else Shrunk(by, Led(x.name or "", path))


def _put(shrunk: Shrunk, draft: Draft, node: ir.Node) -> bool:
    made, of = draft.nodes("shrunk"), shrunk.of.of(node)
    return of is not None and draft.replace(node, made, [made.node("Sub", [of, _between(made, of, shrunk.by)])])


def _between(made: NewNodes, x: ir.Value, by: Array) -> ir.Value:
    """What of a value lies between thresholds below 0 and above."""
    if by.size == 1:
        return made.node("Clip", [x, *(made.held(np.array(end, np.float32)) for end in (-by.item(), by.item()))])
    return made.node("Min", [made.node("Max", [x, made.held(-by)]), made.held(by)])
