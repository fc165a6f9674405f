"""Models that convolve integers: in 32-bit floating-point numbers, as what comes of it is cast to these.

Quantizers that quantize values while the model runs write `ConvInteger` and a cast. onnxruntime 1.32 has no fast
kernel for it: of a YOLOv8n of 320 by 320 it takes 105 ms of a processor's time, and 24 so. Sums of integers below 2²⁴
are exact in 32-bit numbers too, and those above are rounded to such by the cast.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from superopt.arithmetic.carrier import Array
from superopt.onnx_io.order import is_read_once
from superopt.onnx_io.program import Program
from superopt.onnx_io.replacing import Draft, Put, of_nodes
from superopt.onnx_io.said import held, input_of, is_a, number

MOST_BYTES = 2**28
"""What the numbers of all these weights may take."""


class _Convolution(NamedTuple):
    """A convolution of integers, with its weights less that which stands for 0."""

    node: ir.Node
    weights: Array


def convolved(program: Program) -> dict[int, Put]:
    """How to convolve numbers, by the places of what casts what comes of the integers."""
    places = {place: one.weights.size for place, one in of_nodes(program, _cast).items()}
    return dict.fromkeys(places, _put) if 4 * sum(places.values()) <= MOST_BYTES else {}


def _cast(node: ir.Node) -> _Convolution | None:
    """The convolution that a node casts to 32-bit numbers, and that nothing else reads."""
    value = node.inputs[0] if is_a(node, "Cast") and number(node, "to", 0) == ir.DataType.FLOAT else None
    conv = None if value is None else value.producer()
    if value is None or not is_a(conv, "ConvInteger") or conv.graph is not node.graph:
        return None
    weights, given = held(conv.inputs[1]), input_of(conv, 3)
    zero = held(given)
    if weights is None or (given is not None and zero is None) or not is_read_once(value):
        return None
    data = weights.numpy().astype(np.float32)
    zeros = np.zeros(1, np.float32) if zero is None else zero.numpy().astype(np.float32).reshape(-1)
    return _Convolution(conv, data - zeros.reshape(-1, *[1] * (data.ndim - 1)))  # one for all, or for each channel


def _put(draft: Draft, node: ir.Node) -> bool:
    """Convolve how much values are more than that which stands for 0."""
    found = _cast(node)
    if found is None:
        return False
    made, (values, _, *zeros) = draft.nodes("convolved"), found.node.inputs
    read = [v for v in (values, made.held(np.array(1, np.float32)), *zeros[:1]) if v is not None]
    numbers = made.node("DequantizeLinear", read)
    result = made.node("Conv", [numbers, made.held(found.weights)], list(found.node.attributes.values()))
    return draft.replace(node, made, [result])
