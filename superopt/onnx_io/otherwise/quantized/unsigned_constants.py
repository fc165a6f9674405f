"""Constants of bytes with a sign beside values of bytes without one: without one, too, for the same numbers.

onnxruntime computes sums and products of quantized values, and joins them, as such where all are of one type. Products
of matrices are other operators, whose weights are to have a sign.
"""

from __future__ import annotations

import onnx_ir as ir

from superopt.onnx_io.otherwise.quantized.bytes import unsigned
from superopt.onnx_io.program import Program
from superopt.onnx_io.replacing import Draft, Put, of_nodes
from superopt.onnx_io.said import held, is_a
from superopt.onnx_io.surgery import bury

_OF_ONE_TYPE = ("Add", "Concat", "Div", "Max", "Min", "Mul", "Sub", "Where")


def unsigned_constants(program: Program) -> dict[int, Put]:
    """How to write such constants, by the places of what makes numbers of them."""
    return dict.fromkeys(of_nodes(program, _constant), _put)


def _constant(node: ir.Node) -> tuple[ir.TensorProtocol, ir.TensorProtocol] | None:
    """The bytes with a sign of which a node makes numbers, and which of these stands for 0, where all that reads it
    reads numbers that were made of bytes without one.
    """
    if not is_a(node, "DequantizeLinear") or len(node.inputs) < 3 or node.outputs[0].is_graph_output():
        return None
    data, zero = held(node.inputs[0]), held(node.inputs[2])
    users = [user for user, _ in node.outputs[0].uses()]
    if data is None or zero is None or data.dtype != ir.DataType.INT8 or not users:
        return None
    return (data, zero) if all(_is_beside_unsigned(user, node.outputs[0]) for user in users) else None


def _is_beside_unsigned(user: ir.Node, constant: ir.Value) -> bool:
    others = [value for value in user.inputs if value is not None and value is not constant]
    return is_a(user, *_OF_ONE_TYPE) and bool(others) and all(map(_is_of_unsigned, others))


def _is_of_unsigned(value: ir.Value) -> bool:
    maker = value.producer()
    if not is_a(maker, "DequantizeLinear") or len(maker.inputs) < 3:
        return False
    zero = held(maker.inputs[2])
    return zero is not None and zero.dtype == ir.DataType.UINT8


def _put(draft: Draft, node: ir.Node) -> bool:
    """Let a constant be of bytes without a sign."""
    found = _constant(node)
    if found is None:
        return False
    made, read = draft.nodes("constant"), [node.inputs[0], node.inputs[2]]
    for which, data in zip((0, 2), found, strict=True):
        node.replace_input_with(which, made.held(unsigned(data.numpy())))
    draft.model.graph.insert_before(node, made.nodes)
    bury(draft.model, [value for value in read if value is not None])
    return True
