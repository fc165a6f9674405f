"""What runtimes compute in bytes, though the model says it of numbers that are made of these.

Quantizers write operators of floating-point numbers between `DequantizeLinear` and `QuantizeLinear`, and runtimes take
the three as one operator on bytes. What such an operator takes of numbers says nothing of that, and what it becomes by
a rewrite may be none of those that are taken so: of a ResNet-18 convolutions by tiles are computed in 32 bits again.
"""

from __future__ import annotations

import onnx_ir as ir

from superopt.onnx_io.said import is_a

_MAKES = "DequantizeLinear"
"""What makes numbers of bytes."""

_OF_EACH = ("Add", "Concat", "LeakyRelu", "Mul", "Sigmoid", "Where")
_OF_SEVERAL = ("AveragePool", "Conv", "Gemm", "GlobalAveragePool", "MatMul", "Softmax")
MOVED = ("Flatten", "Gather", "MaxPool", "Resize", "Reshape", "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze")
_PRODUCTS = ("Gemm", "MatMul")
"""What may give numbers as well: sums of products of bytes are made to these."""

BOUNDING = ("Clip", "Relu")
"""What becomes part of quantizing, whose bytes have bounds of their own."""

_NUMBERS = (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.DOUBLE, ir.DataType.BFLOAT16, None)


def is_in_bytes(node: ir.Node) -> bool:
    """Whether runtimes compute what a node does in bytes."""
    if is_a(node, *BOUNDING):
        maker = node.inputs[0].producer() if node.inputs and node.inputs[0] is not None else None
        return maker is not None and _becomes_bytes(node) and (is_a(maker, _MAKES) or is_in_bytes(maker))
    if not is_a(node, *_OF_EACH, *_OF_SEVERAL, *MOVED):
        return False
    makers = [value.producer() for value in _numbers(node)]
    of_bytes = bool(makers) and all(is_a(maker, _MAKES) for maker in makers)
    return of_bytes and (is_a(node, *_PRODUCTS) or _becomes_bytes(node))


def _numbers(node: ir.Node) -> list[ir.Value]:
    """What a node reads that is no index, size or choice."""
    first, others = (1, node.inputs[1:]) if is_a(node, "Where") else (0, node.inputs)
    return [v for i, v in enumerate(others, first) if v is not None and (i == first or v.dtype in _NUMBERS)]


def _becomes_bytes(node: ir.Node) -> bool:
    """Whether all that reads what a node gives quantizes that, perhaps within bounds."""
    users = [user for value in node.outputs for user, _ in value.uses()]
    is_inner = bool(users) and not any(value.is_graph_output() for value in node.outputs)
    return is_inner and all(
        is_a(user, "QuantizeLinear") or (is_a(user, *BOUNDING) and _becomes_bytes(user)) for user in users
    )
