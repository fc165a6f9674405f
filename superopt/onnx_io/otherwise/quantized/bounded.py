"""Rectified values that are quantized around 0: bytes are bounded instead, behind what quantizes.

Where the lowest byte stands for 0, quantizing rectifies, and runtimes find what they compute in bytes. Where bytes lie
evenly around 0, as TensorRT wants them and training for it writes them, a Relu stands between a convolution and what
quantizes, and onnxruntime 1.32 computes that convolution in 32 bits. What quantizes never falls, so that the byte of
what is above 0 is the larger of a byte and that of 0.
"""

from __future__ import annotations

import onnx_ir as ir

from superopt.onnx_io.order import is_read_once
from superopt.onnx_io.otherwise.quantized.bytes import adds_up_products
from superopt.onnx_io.otherwise.quantized.regions import dequantizing
from superopt.onnx_io.program import Program
from superopt.onnx_io.replacing import Draft, Put
from superopt.onnx_io.said import held, is_a
from superopt.onnx_io.skeleton import opset_of
from superopt.onnx_io.surgery import bury, pass_on

_OPSET = 13
"""From this on bytes can be bounded."""

_BYTES = (ir.DataType.INT8, ir.DataType.UINT8)


def bounded(program: Program) -> dict[int, Put]:
    """How to bound bytes, by the places of what rectifies."""
    if not adds_up_products() or opset_of(program.model) < _OPSET:
        return {}
    return {place: _put for place, node in enumerate(program.model.graph) if _is_bounded_so(node)}


def _is_bounded_so(node: ir.Node) -> bool:
    """Whether all that a node gives is what a convolution of bytes gives, rectified, and all of it is quantized."""
    value = node.inputs[0] if is_a(node, "Relu") else None
    conv = None if value is None else value.producer()
    if value is None or not is_a(conv, "Conv") or conv.graph is not node.graph:
        return False
    if not is_read_once(value) or node.outputs[0].is_graph_output():
        return False
    users = [user for user, _ in node.outputs[0].uses()]
    are_quantizing = bool(users) and all(user.graph is node.graph and _is_around_0(user) for user in users)
    return are_quantizing and dequantizing(conv, 0) is not None and dequantizing(conv, 1) is not None


def _is_around_0(node: ir.Node) -> bool:
    """Whether a node quantizes to bytes below that of 0, too, all by one scale."""
    if not is_a(node, "QuantizeLinear") or len(node.inputs) < 3:
        return False
    scale, zero = held(node.inputs[1]), held(node.inputs[2])
    if scale is None or zero is None or zero.dtype not in _BYTES or zero.numpy().size != 1:
        return False
    lowest = -128 if zero.dtype == ir.DataType.INT8 else 0
    return scale.numpy().size == 1 and scale.numpy().item() > 0 and zero.numpy().item() > lowest


def _put(draft: Draft, node: ir.Node) -> bool:
    """Bound the bytes of all that quantizes."""
    if not _is_bounded_so(node):
        return False
    for user in [user for user, _ in node.outputs[0].uses()]:
        zero, bytes_of = held(user.inputs[2]), user.outputs[0]
        if zero is None:
            return False
        user.replace_input_with(0, node.inputs[0])
        made = draft.nodes("bounded")
        lowest = made.held(zero.numpy().reshape(()))
        result = made.node("Clip", [bytes_of, lowest])
        pass_on(bytes_of, result)
        bytes_of.replace_all_uses_with(result, replace_graph_outputs=True)
        made.nodes[-1].replace_input_with(0, bytes_of)
        bytes_of.name, result.name = result.name, bytes_of.name
        draft.model.graph.insert_after(user, made.nodes)
    bury(draft.model, [node.outputs[0]])
    return True
