"""What runtimes compute in bytes, though the model says it of numbers that are made of these.

Quantizers write operators of floating-point numbers between `DequantizeLinear` and `QuantizeLinear`, and runtimes take
the three as one operator on bytes. What such an operator takes of numbers says nothing of that, and what it becomes by
a rewrite may be none of those that are taken so: of a ResNet-18 convolutions by tiles are computed in 32 bits again.
"""

from __future__ import annotations

import onnx_ir as ir

from superopt.onnx_io.operator_kinds import VIEWS
from superopt.onnx_io.said import is_a

_MAKES = "DequantizeLinear"
"""What makes numbers of bytes."""

_OF_EACH = ("Add", "Concat", "LeakyRelu", "Mul", "Sigmoid", "Where")
_OF_SEVERAL = ("AveragePool", "Conv", "Gemm", "GlobalAveragePool", "MatMul", "Softmax")
MOVED = (*VIEWS, "Gather", "MaxPool", "Resize", "Slice", "Split", "Transpose")
_PRODUCTS = ("Gemm", "MatMul")
"""What may give numbers as well: sums of products of bytes are made to these."""

BOUNDING = ("Clip", "Relu")
"""What becomes part of quantizing, whose bytes have bounds of their own."""

MOST_BOUNDING = 64
"""Behind more than so many that bound the same numbers nothing is looked for."""

_NUMBERS = (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.DOUBLE, ir.DataType.BFLOAT16, None)


def is_in_bytes(node: ir.Node) -> bool:
    """Whether runtimes compute what a node does in bytes."""
    top, maker = _first_bounding(node)
    if top is None:
        return maker is not None and _is_computed_so(maker)
    return maker is not None and becomes_bytes(top) and (is_a(maker, _MAKES) or _is_computed_so(maker))


def _first_bounding(node: ir.Node) -> tuple[ir.Node | None, ir.Node | None]:
    """The first of those that bound the same numbers up to a node, and what makes these; none and the node itself where
    it bounds nothing.
    """
    first: ir.Node | None = None
    maker: ir.Node | None = node
    for _ in range(MOST_BOUNDING):
        if maker is None or not is_a(maker, *BOUNDING):
            return first, maker
        first, maker = maker, maker.inputs[0].producer() if maker.inputs and maker.inputs[0] is not None else None
    return first, None


def _is_computed_so(node: ir.Node) -> bool:
    """The same of a node that is to do more than to bound what is computed."""
    if not is_a(node, *_OF_EACH, *_OF_SEVERAL, *MOVED):
        return False
    makers = [value.producer() for value in _numbers(node)]
    of_bytes = bool(makers) and all(is_a(maker, _MAKES) for maker in makers)
    return of_bytes and (is_a(node, *_PRODUCTS) or becomes_bytes(node))


def _numbers(node: ir.Node) -> list[ir.Value]:
    """What a node reads that is no index, size or choice."""
    first, others = (1, node.inputs[1:]) if is_a(node, "Where") else (0, node.inputs)
    return [v for i, v in enumerate(others, first) if v is not None and (i == first or v.dtype in _NUMBERS)]


def becomes_bytes(node: ir.Node) -> bool:
    """Whether all that reads what a node gives quantizes that, perhaps within bounds."""
    left, seen = [node], {node}
    while left and len(seen) <= MOST_BOUNDING:
        outputs = left.pop().outputs
        users = [user for value in outputs for user, _ in value.uses()]
        if not users or any(value.is_graph_output() for value in outputs):
            return False
        bounding = [user for user in users if not is_a(user, "QuantizeLinear")]
        if not all(is_a(user, *BOUNDING) for user in bounding):
            return False
        left += [user for user in bounding if user not in seen]
        seen.update(bounding)
    return not left
