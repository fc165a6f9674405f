"""Bounds that are a Min and a Max beside numbers, as one Clip.

TensorFlow's converters write ReLU6 as `Min(Max(x, 0), 6)`, others as a Relu and a Min. onnxruntime 1.32 computes a
convolution and the Clip behind it in one, and a Min or Max with numbers apart, as an operator of two: a MobileNetV2
with them takes 1.45 times as long. A model of a hundred such pairs has as many pieces, so this needs no search.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from superopt.onnx_io.naming import name_of
from superopt.onnx_io.new_nodes import NewNodes
from superopt.onnx_io.otherwise.spelled.steps import Led, beside, is_wide, step_before
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import BOUNDS_GIVEN, bounds_of
from superopt.onnx_io.replacing import Draft, Put, of_nodes
from superopt.onnx_io.said import is_a

STEPS = ("Clip", "Max", "Min", "Relu")

_EVER = float("inf")


class Bounds(NamedTuple):
    """Between which numbers something is taken."""

    low: float
    high: float
    of: Led


def clips(program: Program) -> dict[int, Put]:
    """How to write bounds as a Clip, by the places of the last steps."""
    return {place: partial(_put, found) for place, found in of_nodes(program, partial(_spelled, program)).items()}


def _spelled(program: Program, node: ir.Node) -> Bounds | None:
    """The bounds of steps that end here, of which one is a Min or a Max and which pay as a Clip; None of others."""
    if not is_a(node, *STEPS) or not is_wide(program, node.outputs[0], "float32") or _goes_on(program, node):
        return None
    low, high, spelled, name, path = -_EVER, _EVER, False, "", tuple[int, ...]()
    step: ir.Node | None = node
    while step is not None and (one := _bound(program, step)) is not None:
        at_least, at_most, of = one
        # What one step bounds first and these then is one number where they cross.
        low, high = min(max(at_least, low), high), max(min(at_most, high), low)
        spelled |= is_a(step, "Max", "Min")
        name, path = of.name, path + of.path
        value = step.inputs[of.path[0]]
        step = None if value is None else step_before(value)
    is_fused = (low, high) == (0.0, _EVER) and is_a(step, "Conv", "BatchNormalization")
    pays = is_fused or -_EVER < low <= high < _EVER
    return Bounds(low, high, Led(name, path)) if spelled and pays else None


def _goes_on(program: Program, node: ir.Node) -> bool:
    """Whether what reads a value bounds it again, and nothing else reads it."""
    (last,) = node.outputs
    reader = next((use.node for use in last.uses()), None)
    found = _bound(program, reader) if reader is not None and step_before(last) is not None else None
    return reader is not None and found is not None and reader.inputs[found.of.path[0]] is last


def _bound(program: Program, node: ir.Node) -> Bounds | None:
    """Between which numbers a node takes one that it reads."""
    if (told := bounds_of(program, node)) is not None:
        return Bounds(*told, Led(name_of(node.inputs[0]), (0,)))
    found = beside(program, node, "Max", "Min")
    if found is None or np.isnan(found.number):
        return None
    of = Led(name_of(found.value), (found.place,))
    return Bounds(found.number, _EVER, of) if is_a(node, "Max") else Bounds(-_EVER, found.number, of)


def _put(bounds: Bounds, draft: Draft, node: ir.Node) -> bool:
    made, of = draft.nodes("bounded"), bounds.of.of(node)
    return of is not None and draft.replace(node, made, [_bounded(made, of, bounds.low, bounds.high)])


def _bounded(made: NewNodes, of: ir.Value, low: float, high: float) -> ir.Value:
    """Numbers of 32 bits between two, or not below 0."""
    if high == _EVER:
        return made.node("Relu", [of])
    if made.opset < BOUNDS_GIVEN:
        return made.node("Clip", [of], [ir.AttrFloat32("min", low), ir.AttrFloat32("max", high)])
    return made.node("Clip", [of, *(made.held(np.array(end, np.float32)) for end in (low, high))])
