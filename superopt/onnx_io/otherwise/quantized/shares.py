"""Models with softmaxes of quantized rows: computed in 32-bit numbers, as runtimes have faster kernels for these.

onnxruntime 1.32 takes the softmax between `DequantizeLinear` and `QuantizeLinear` as one operator, which computes
number by number: 2.7 to 3.3 ns for each, and 0.8 to 1.6 by vectors, between a cast and a `QuantizeLinear`. It looks for
what dequantizes in front of it; a cast, a difference and a product give the same numbers to the last bit. So is what
comes of rows; exponentials that are added up and divided may be a byte off where one lies between two.
Along another axis than the last it is slower yet, of bytes and of numbers: of 16 by 8,400, as detectors have them, 9.0
ns for each number, and 0.9 where exponentials are added up and divided by their sum. What bytes stand for does not go
far, so that mostly none of these has to be taken off the largest before.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import onnx_ir as ir

from superopt.dim import product
from superopt.onnx_io.new_nodes import NewNodes
from superopt.onnx_io.otherwise.quantized.regions import dequantizing
from superopt.onnx_io.otherwise.quantized.stepping import steps_of
from superopt.onnx_io.otherwise.quantized.unsigned_values import becomes_unsigned
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import LAST_BY_ITSELF, is_softmax_of_rows, shape_of
from superopt.onnx_io.replacing import Draft, Put, of_nodes
from superopt.onnx_io.said import is_a, number
from superopt.onnx_io.skeleton import opset_of
from superopt.onnx_io.surgery import bury

LEAST, LEAST_OF_A_ROW = 2**12, 16
"""So many numbers are computed at least, of rows of so many: of 8 the one operator is faster."""

STEPS, LOWEST = 255, -64.0
"""Between bytes are so many steps at most. What is so much below the largest of a row weighs nothing beside it, to the
last bit of a sum of as many as may be; and numbers that are so small that processors are slow with them are none of
these.
"""

LARGEST = float(np.finfo(np.float32).max)
"""What bytes stand for is below it, wherever 0 is among them."""


def shares(program: Program) -> dict[int, Put]:
    """How to compute such softmaxes, by their places."""
    return dict.fromkeys(of_nodes(program, partial(_is_of_many, program)), partial(_put, program))


def _across(node: ir.Node, rank: int, opset: int) -> int | None:
    """Along which axis a node is a softmax that is not the last; None where it is the last, or several as one."""
    axis = number(node, "axis", -1) % rank
    return axis if opset >= LAST_BY_ITSELF and axis != rank - 1 else None


def _is_of_many(program: Program, node: ir.Node) -> bool:
    """Whether a node is a softmax of many quantized numbers, which is quantized, of rows that are not short, or along
    another axis.
    """
    shape = shape_of(program, node.outputs[0]) if is_a(node, "Softmax") else None
    maker = _dequantizing(node)
    if not shape or maker is None or maker.inputs[0] is None or becomes_unsigned(program, maker.inputs[0]):
        return False
    if not is_softmax_of_rows(program, node):
        if _across(node, len(shape), opset_of(program.model)) is None:
            return False
    elif isinstance(shape[-1], int) and shape[-1] < LEAST_OF_A_ROW:
        return False
    many = product(shape)
    return not isinstance(many, int) or many >= LEAST


def _dequantizing(node: ir.Node) -> ir.Node | None:
    """What dequantizes by one scale the bytes of which a node is the softmax, where only that is quantized."""
    maker = dequantizing(node, 0) if is_a(node, "Softmax") else None
    users = [user for user, _ in node.outputs[0].uses()]
    if maker is None or not users or not all(is_a(user, "QuantizeLinear") for user in users):
        return None
    steps = steps_of(maker)
    return maker if steps is not None and 0 < STEPS * steps.scale < LARGEST else None


def _put(program: Program, draft: Draft, node: ir.Node) -> bool:
    """Let a softmax be of bytes that are cast, and multiplied by their scale."""
    maker = _dequantizing(node)
    steps = None if maker is None else steps_of(maker)
    if maker is None or maker.inputs[0] is None or steps is None:
        return False
    made, before = draft.nodes("scores"), maker.outputs[0]
    axis = _across(node, len(shape_of(program, node.outputs[0]) or (0,)), made.opset)
    numbers = made.cast(maker.inputs[0], ir.DataType.FLOAT)
    if steps.zero:  # shares are the same without, but not to the last bit
        numbers = made.node("Sub", [numbers, made.held(np.array(steps.zero, np.float32))])
    scores = made.node("Mul", [numbers, made.held(np.array(steps.scale, np.float32))])
    if STEPS * steps.scale > -LOWEST:
        scores = _floored(made, scores, -1 if axis is None else axis)
    if axis is None:
        draft.model.graph.insert_before(node, made.nodes)
        node.replace_input_with(0, scores)
        bury(draft.model, [before])
        return True
    powers = made.node("Exp", [scores])
    result = made.node("Div", [powers, made.over(powers, "ReduceSum", [axis])])
    return draft.replace(node, made, [result])


def _floored(made: NewNodes, scores: ir.Value, axis: int) -> ir.Value:
    """How much less than the largest along an axis scores are, and no less than what nothing is added to one by."""
    less = made.node("Sub", [scores, made.over(scores, "ReduceMax", [axis])])
    return made.node("Max", [less, made.held(np.array(LOWEST, np.float32))])
