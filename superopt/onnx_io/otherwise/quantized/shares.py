"""Models with softmaxes of quantized rows: computed in 32-bit numbers, as runtimes have faster kernels for these.

onnxruntime 1.32 takes the softmax between `DequantizeLinear` and `QuantizeLinear` as one operator, which computes
number by number: 2.7 to 3.3 ns for each, and 0.8 to 1.6 by vectors, between a cast and a `QuantizeLinear`. It looks for
what dequantizes in front of it; as a softmax is the same of what is moved as a whole, a cast and a product do, too.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from superopt.dim import product
from superopt.onnx_io.new_nodes import NewNodes
from superopt.onnx_io.otherwise.quantized.regions import dequantizing
from superopt.onnx_io.otherwise.reading import is_softmax_of_rows, shape_of
from superopt.onnx_io.program import Program
from superopt.onnx_io.replacing import Draft, Put
from superopt.onnx_io.said import held, input_of, is_a
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
    return {place: _put for place, node in enumerate(program.model.graph) if _is_of_many(program, node)}


def _is_of_many(program: Program, node: ir.Node) -> bool:
    """Whether a node is a softmax of many quantized numbers, which is quantized, of rows that are not short."""
    if _dequantizing(node) is None or not is_softmax_of_rows(program, node):
        return False
    shape = shape_of(program, node.outputs[0]) or ()
    if not shape or (isinstance(shape[-1], int) and shape[-1] < LEAST_OF_A_ROW):
        return False
    many = product(shape)
    return not isinstance(many, int) or many >= LEAST


def _dequantizing(node: ir.Node) -> ir.Node | None:
    """What dequantizes by one scale the bytes of which a node is the softmax, where only that is quantized."""
    maker = dequantizing(node, 0) if is_a(node, "Softmax") else None
    users = [user for user, _ in node.outputs[0].uses()]
    if maker is None or not users or not all(is_a(user, "QuantizeLinear") for user in users):
        return None
    scale, zero = held(maker.inputs[1]), held(input_of(maker, 2))
    is_of_bytes = zero is not None and zero.dtype in (ir.DataType.INT8, ir.DataType.UINT8)
    if scale is None or scale.dtype != ir.DataType.FLOAT or scale.numpy().size != 1:
        return None
    return maker if is_of_bytes and 0 < STEPS * scale.numpy().item() < LARGEST else None


def _put(draft: Draft, node: ir.Node) -> bool:
    """Let a softmax be of bytes that are cast, and multiplied by their scale."""
    maker = _dequantizing(node)
    given = None if maker is None else held(maker.inputs[1])
    if maker is None or maker.inputs[0] is None or given is None:
        return False
    made, before = draft.nodes("scores"), maker.outputs[0]
    scale = np.asarray(given.numpy(), np.float32).reshape(())
    numbers = made.cast(maker.inputs[0], ir.DataType.FLOAT)
    scores = made.node("Mul", [numbers, made.held(scale)])
    if STEPS * scale > -LOWEST:
        scores = _floored(made, scores)
    draft.model.graph.insert_before(node, made.nodes)
    node.replace_input_with(0, scores)
    bury(draft.model, [before])
    return True


def _floored(made: NewNodes, scores: ir.Value) -> ir.Value:
    """How much less than the largest of their rows scores are, and no less than what nothing is added to one by."""
    less = made.node("Sub", [scores, made.over(scores, "ReduceMax", [-1])])
    return made.node("Max", [less, made.held(np.array(LOWEST, np.float32))])
