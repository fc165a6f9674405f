"""Models whose weights are bytes without a sign: with bytes that have one, which stand for the same numbers.

Where processors have instructions for products of bytes, these multiply one without a sign by one with a sign.
onnxruntime 1.32 takes 2.9 times as long for a ResNet-18 whose weights are bytes without a sign.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx_ir as ir

from superopt.arithmetic.carrier import Array
from superopt.onnx_io.otherwise.quantized.bytes import are_exact, signed, zeros
from superopt.onnx_io.program import Program
from superopt.onnx_io.replacing import Draft, Put, of_nodes
from superopt.onnx_io.said import held, input_of, is_a
from superopt.onnx_io.surgery import bury

_WEIGHTS: Mapping[str, tuple[int, int]] = {
    "QLinearConv": (3, 5),
    "QGemm": (3, 5),
    "QLinearMatMul": (3, 5),
    "MatMulInteger": (1, 3),
    "DequantizeLinear": (0, 2),
}
"""Of operators the places of weights, and of their zero points."""


def signed_weights(program: Program) -> dict[int, Put]:
    """How to write such weights, by the places of what reads them."""
    return {place: _put for place, data in of_nodes(program, _weights).items() if are_exact(signed(data))}


def _weights(node: ir.Node) -> Array | None:
    """The weights without a sign that a node multiplies by, or that stand for those of a product."""
    if not is_a(node, *_WEIGHTS) and (node.domain, node.op_type) != ("com.microsoft", "QGemm"):
        return None
    which, its_zero = _WEIGHTS[node.op_type]
    weights = node.inputs[which]
    data = held(weights)
    if weights is None or data is None or data.dtype != ir.DataType.UINT8 or len(weights.uses()) > 1:
        return None
    if zeros(node, its_zero, np.uint8) is None or weights.is_graph_output():
        return None
    return data.numpy() if not is_a(node, "DequantizeLinear") or _is_multiplied(node.outputs[0]) else None


def _is_multiplied(value: ir.Value) -> bool:
    """Whether all that reads a value is products of quantized values with it."""
    users = [user for user, which in value.uses() if which == 1 and is_a(user, "Conv", "Gemm", "MatMul")]
    makers = [user.inputs[0].producer() for user in users if user.inputs[0] is not None]
    return len(users) == len(value.uses()) and all(is_a(maker, "DequantizeLinear") for maker in makers)


def _put(draft: Draft, node: ir.Node) -> bool:
    """Let the weights of a node have a sign."""
    which, its_zero = _WEIGHTS[node.op_type]
    data, zero = _weights(node), zeros(node, its_zero, np.uint8)
    if data is None or zero is None:
        return False
    made, given = draft.nodes("weights"), (node.inputs[which], input_of(node, its_zero))
    read = [v for v in given if v is not None]
    node.resize_inputs(max(len(node.inputs), its_zero + 1))
    node.replace_input_with(which, made.held(signed(data)))
    node.replace_input_with(its_zero, made.held(signed(zero)))
    draft.model.graph.insert_before(node, made.nodes)
    bury(draft.model, read)
    return True
