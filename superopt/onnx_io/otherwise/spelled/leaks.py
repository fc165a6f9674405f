"""Rectifiers that leak, as the one operator that runtimes compute with a convolution.

Networks of TensorFlow spell a leaky ReLU as `max(x, x/10)` (YOLOv3's), others by a choice, `where(x > 0, x, x/10)`, for
which onnxruntime 1.32 takes 40 times as long; Keras a parametric one as `relu(x) - slope·relu(-x)`. And torch's
`nn.PReLU()` has one slope for all channels, with which a PRelu is a LeakyRelu.
That takes no time behind a convolution. A PRelu of a slope for each channel, as networks for faces have it, onnxruntime
1.32 computes as an operator of two with a choice: of 64 channels of 64 by 64 places that takes 5,700 µs; slopes up to
1 times a value, and the larger of both, 200. Both round alike.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from superopt.arithmetic.carrier import Array
from superopt.onnx_io.new_nodes import NewNodes
from superopt.onnx_io.otherwise.spelled.steps import PRODUCTS, Led, beside, is_of_numbers, is_wide, step_before
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import data_of, shape_of
from superopt.onnx_io.replacing import Draft, Put, of_nodes
from superopt.onnx_io.said import is_a
from superopt.onnx_io.skeleton import opset_of
from superopt.substitution import elements

WIDENED = 8
"""The opset from which on slopes go to the last axes of what they are for, and a Min takes a number beside a value."""


FEW_SLOPED, FEW_OF_BOTH = 2**12, 2**13
"""Of fewer elements a PRelu takes as long as a product and the larger, and any choice as four steps."""


_MORE, _LESS = ("Greater", "GreaterOrEqual"), ("Less", "LessOrEqual")
"""What asks whether one value is above, and below, another: at 0 all slopes give the same."""


_SUMS = ("Add", "BatchNormalization", *PRODUCTS)
"""What is rectified: of an input that may be no number, a choice also takes out what is none."""


class Leak(NamedTuple):
    """A value of which what is negative is times slopes."""

    slopes: Array
    of: Led


def leaks(program: Program) -> dict[int, Put]:
    """How to write rectifiers that leak, by the places of their last steps."""
    return {place: partial(_put, leak) for place, leak in of_nodes(program, partial(_paying, program)).items()}


def _paying(program: Program, node: ir.Node) -> Leak | None:
    """The rectifier that ends here, where it is computed faster as this writes it."""
    leak = _leak(program, node)
    if leak is None or _are_alike(leak.slopes) or is_a(node, "Add", "Sub"):
        return leak
    few = FEW_OF_BOTH if not _are_on_one_side(leak.slopes) else FEW_SLOPED if is_a(node, "PRelu") else 0
    return leak if (shape := shape_of(program, node.outputs[0])) is not None and elements(shape) >= few else None


def _leak(program: Program, node: ir.Node) -> Leak | None:
    if not is_a(node, "Add", "Max", "PRelu", "Sub", "Where") or len(node.inputs) != 2 + is_a(node, "Where"):
        return None
    if opset_of(program.model) < WIDENED or not is_wide(program, node.outputs[0], "float32"):
        return None
    if is_a(node, "PRelu"):
        slopes, shape = data_of(program, node.inputs[1]), shape_of(program, node.outputs[0])
        # onnxruntime's gives what slopes of more axes have, and ONNX's what it reads.
        is_told = slopes is not None and shape is not None and slopes.size > 0 and slopes.ndim <= len(shape)
        return _leak_of(slopes, node.inputs[0], 0) if is_told and slopes is not None else None
    if is_a(node, "Where"):
        return _of_choice(program, node)
    return _of_larger(program, node) if is_a(node, "Max") else _of_parts(program, node)


def _of_larger(program: Program, node: ir.Node) -> Leak | None:
    """The larger of a value and a part of it."""
    for place, value in enumerate(node.inputs):
        part = None if value is None else beside(program, step_before(value), "Mul")
        if part is not None and part.value is node.inputs[1 - place] and 0 < part.number < 1:
            return _leak_of(np.array([part.number], np.float32), part.value, 1 - place)
    return None


def _of_parts(program: Program, node: ir.Node) -> Leak | None:
    """What is positive, and slopes times what is negative."""
    for place in (0,) if is_a(node, "Sub") else (0, 1):
        one, other = (_step(node, p) for p in (place, 1 - place))
        if not is_a(one, "Relu") or not is_a(other, "Mul"):
            continue
        for at in (0, 1):
            slopes, relu = data_of(program, other.inputs[at]), _step(other, 1 - at)
            negative = _step(relu, 0) if is_a(relu, "Relu") else None
            if slopes is None or not is_a(negative, "Neg") or negative.inputs[0] is not one.inputs[0]:
                continue
            if shape_of(program, one.inputs[0]) == shape_of(program, node.outputs[0]):
                return _leak_of(slopes if is_a(node, "Sub") else -slopes, one.inputs[0], place, 0)
    return None


def _of_choice(program: Program, node: ir.Node) -> Leak | None:
    """A value where it is positive, and elsewhere slopes times it, or nothing."""
    condition = None if node.inputs[0] is None else node.inputs[0].producer()
    found = beside(program, condition, *_MORE, *_LESS)
    if found is None or found.number or condition is None:
        return None
    place = 1 if is_a(condition, *_MORE) == (found.place == 0) else 2
    value, other = node.inputs[place], node.inputs[3 - place]
    if value is not found.value or other is None or shape_of(program, value) != shape_of(program, node.outputs[0]):
        return None
    slopes, product = data_of(program, other), other.producer()
    if slopes is not None:
        is_nothing = not slopes.any() and is_a(value.producer(), *_SUMS) and is_of_numbers(program, value)
        return _leak_of(np.zeros(1, np.float32), value, place) if is_nothing else None
    if not is_a(product, "Mul"):
        return None
    for at in (0, 1):
        slopes = data_of(program, product.inputs[1 - at])
        if product.inputs[at] is value and slopes is not None and slopes.size:
            return _leak_of(slopes, value, place)
    return None


def _leak_of(slopes: Array, value: ir.Value | None, *path: int) -> Leak | None:
    """Times slopes that are numbers: what is positive is not multiplied by what is none."""
    is_told = value is not None and bool(np.isfinite(slopes).all())
    return Leak(slopes, Led(value.name or "", path)) if is_told and value is not None else None


def _step(node: ir.Node | None, place: int) -> ir.Node | None:
    value = None if node is None else node.inputs[place]
    return None if value is None else step_before(value)


def _put(leak: Leak, draft: Draft, node: ir.Node) -> bool:
    made, of = draft.nodes("leaks"), leak.of.of(node)
    return of is not None and draft.replace(node, made, [_leaking(made, of, leak.slopes)])


def _leaking(made: NewNodes, x: ir.Value, slopes: Array) -> ir.Value:
    """What is negative of a value times slopes: the larger of both where no slope is steeper than what is positive."""
    if not slopes.any():
        return made.node("Relu", [x])
    if _are_alike(slopes):
        return made.node("LeakyRelu", [x], [ir.AttrFloat32("alpha", float(slopes.reshape(-1)[0]))])
    if _are_on_one_side(slopes):
        sloped = made.node("Mul", [x, made.held(slopes)])
        return made.node("Max" if bool((slopes <= 1).all()) else "Min", [x, sloped])
    negative = made.node("Min", [x, made.held(np.array(0, np.float32))])
    return made.node("Add", [made.node("Relu", [x]), made.node("Mul", [negative, made.held(slopes)])])


def _are_alike(slopes: Array) -> bool:
    return bool((slopes == slopes.reshape(-1)[0]).all())


def _are_on_one_side(slopes: Array) -> bool:
    """Whether none is steeper, or none less steep, than what is positive."""
    return bool((slopes <= 1).all()) or bool((slopes >= 1).all())
