"""What runtimes compute in bytes, though the model says it of numbers that are made of these.

Quantizers write operators of floating-point numbers between `DequantizeLinear` and `QuantizeLinear`, and runtimes take
the three as one operator on bytes. What such an operator takes of numbers says nothing of that, and what it becomes by
a rewrite may be none of those that are taken so: of a ResNet-18 convolutions by tiles are computed in 32 bits again.
"""

from __future__ import annotations

import onnx_ir as ir

from superopt.onnx_io.skeleton import ONNX_DOMAIN

_COMPUTED = frozenset(
    [
        "Add",
        "AveragePool",
        "Concat",
        "Conv",
        "Gemm",
        "GlobalAveragePool",
        "LeakyRelu",
        "MatMul",
        "Mul",
        "Sigmoid",
        "Softmax",
        "Where",
    ]
)
_MOVED = frozenset(
    ["Flatten", "Gather", "MaxPool", "Resize", "Reshape", "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze"]
)
_PRODUCTS = frozenset(["Gemm", "MatMul"])
"""What may give numbers as well: sums of products of bytes are made to these."""

_BOUNDING = frozenset(["Clip", "Relu"])
"""What becomes part of quantizing, whose bytes have bounds of their own."""

_NUMBERS = (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.DOUBLE, ir.DataType.BFLOAT16, None)


def is_in_bytes(node: ir.Node) -> bool:
    """Whether runtimes compute what a node does in bytes."""
    if _is_a(node, _BOUNDING):
        maker = node.inputs[0].producer() if node.inputs and node.inputs[0] is not None else None
        return maker is not None and _becomes_bytes(node) and (_dequantizes(maker) or is_in_bytes(maker))
    if not _is_a(node, _COMPUTED | _MOVED) or not node.inputs:
        return False
    numbers = [v for i, v in enumerate(node.inputs) if v is not None and (i == 0 or v.dtype in _NUMBERS)]
    if _is_a(node, frozenset(["Where"])):
        numbers = [v for v in node.inputs[1:] if v is not None]
    makers = [value.producer() for value in numbers]
    of_bytes = bool(makers) and all(maker is not None and _dequantizes(maker) for maker in makers)
    return of_bytes and (_is_a(node, _PRODUCTS) or _becomes_bytes(node))


def _is_a(node: ir.Node, op_types: frozenset[str]) -> bool:
    return node.op_type in op_types and node.domain in ONNX_DOMAIN


def _dequantizes(node: ir.Node) -> bool:
    return node.op_type == "DequantizeLinear"


def _becomes_bytes(node: ir.Node) -> bool:
    """Whether all that reads what a node gives quantizes that, perhaps within bounds."""
    users = [user for value in node.outputs for user, _ in value.uses()]
    is_inner = bool(users) and not any(value.is_graph_output() for value in node.outputs)
    return is_inner and all(
        user.op_type == "QuantizeLinear" or (_is_a(user, _BOUNDING) and _becomes_bytes(user)) for user in users
    )
