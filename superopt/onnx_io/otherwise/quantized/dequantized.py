"""Weights that are quantized where values are not, which are held as the numbers that they stand for.

onnxruntime 1.32 makes these numbers anew in each run: three layers of 2,048 by 2,048 take 20.7 ms of 8 bits and 15.1 of
4, and 7.6 and 6.6 of 32; one of 256 by 512 and one of 512 by 64 of 8-bit floats 434 µs, and 18. The numbers are the
same, and convolutions with weights that are made in each run are computed without the order of channels that is
fastest: a MobileNetV2 whose weights TFLite has quantized takes twice as long so. What is computed between quantized
values is left to the runtime, which has operators for it, and so are products with integers of several scales: of one
row they take a quarter of the time. But it makes a Gemm of a product of two axes and the sum behind it before it looks
for these. Nor has it a convolution of bytes that gives numbers: where what comes of one is not quantized its weights
are held as well.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import onnx_ir as ir

from superopt.arithmetic.carrier import Array
from superopt.onnx_io.in_bytes import BOUNDING, MOVED, becomes_bytes
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import data_of
from superopt.onnx_io.replacing import Draft, Put
from superopt.onnx_io.said import is_a
from superopt.onnx_io.skeleton import all_nodes
from superopt.onnx_io.surgery import put, replace_node
from superopt.substitution import elements

MOST_BYTES = 2**28
"""What all of these numbers may take; else the model stays, as its weights may be quantized so that they have room."""

_QUANTIZING = ("QuantizeLinear", "DynamicQuantizeLinear")

_PASSING = (*MOVED, *BOUNDING, "Cast", "Identity", "Pad")
"""Behind what gives or reads bytes, what may be computed in bytes as well."""


def dequantized(program: Program) -> dict[int, Put]:
    """How to hold the numbers of weights, by the places of what makes them."""
    found = [(i, node) for i, node in enumerate(program.model.graph) if is_a(node, "DequantizeLinear")]
    places = [(i, node) for i, node in found if _is_of_a_weight(program, node)]
    if len(places) < len(found) or any(is_a(node, *_QUANTIZING) for node in all_nodes(program.model)):
        places = [(i, node) for i, node in places if not _is_beside_bytes(program, node.outputs[0])]
    places = [(i, node) for i, node in places if not _is_multiplied_as_it_is(program, node)]
    types = [program.values[node.outputs[0].name or ""].type for _, node in places]
    if sum(elements(t.shape) * np.dtype(t.dtype).itemsize for t in types) > MOST_BYTES:
        return {}
    return {i: partial(_hold, program) for i, _ in places}


def _is_beside_bytes(program: Program, numbers: ir.Value) -> bool:
    """Whether what reads the numbers of a weight, or what is moved or bounded of these, may be computed in bytes."""
    left, seen = [numbers], {numbers}
    while left:
        value = left.pop()
        for user, _ in value.uses():
            if not is_a(user, *_PASSING):
                if _is_in_bytes(program, user, value):
                    return True
                continue
            left += [given for given in user.outputs if given not in seen]
            seen.update(user.outputs)
    return False


def _is_in_bytes(program: Program, user: ir.Node, value: ir.Value) -> bool:
    """Whether that may be so of a node: with numbers of bytes that are computed, or by itself. Convolutions are so only
    if what they give is quantized.
    """
    if is_a(user, "Conv") and not becomes_bytes(user):
        return False
    others = [v for v in user.inputs if v is not None and v is not value and not program.is_constant(v)]
    return not others or any(map(_is_of_bytes, others))


def _is_of_bytes(value: ir.Value) -> bool:
    """Whether numbers are made of bytes, and perhaps moved or bounded then."""
    maker = value.producer()
    while maker is not None and is_a(maker, *_PASSING) and maker.inputs and maker.inputs[0] is not None:
        maker = maker.inputs[0].producer()
    return is_a(maker, "DequantizeLinear")


def _is_of_a_weight(program: Program, node: ir.Node) -> bool:
    """Whether what a node gives is a constant of 32-bit numbers, and no output."""
    (value,) = node.outputs
    known = program.values.get(value.name or "")
    is_of_32 = known is not None and known.type.dtype == "float32"
    return is_of_32 and (value.name or "") in program.constants and not value.is_graph_output()


def _is_multiplied_as_it_is(program: Program, node: ir.Node) -> bool:
    """Whether the runtime multiplies by the integers that a node reads, as MatMulNBits."""
    numbers, scale = node.inputs[:2]
    data = data_of(program, scale)
    if numbers is None or numbers.dtype is None or numbers.dtype.is_floating_point() or data is None or data.size == 1:
        return False
    products = [use.node for use in node.outputs[0].uses() if is_a(use.node, "MatMul")]
    return not all(_becomes_gemm(program, product) for product in products)


def _becomes_gemm(program: Program, product: ir.Node) -> bool:
    """Whether rows of two axes are multiplied, and all that reads the product is a sum."""
    rows = product.inputs[0]
    known = None if rows is None else program.values.get(rows.name or "")
    uses = list(product.outputs[0].uses())
    return known is not None and known.type.rank == 2 and len(uses) == 1 and is_a(uses[0].node, "Add")


def _hold(program: Program, draft: Draft, node: ir.Node) -> bool:
    """Make the numbers a weight."""
    numbers: Array | None = data_of(program, node.outputs[0])
    if numbers is None:
        return False
    tensor = ir.Tensor(numbers, name=node.outputs[0].name)
    held = ir.Value(type=ir.TensorType(tensor.dtype), shape=tensor.shape, const_value=tensor)
    replace_node(draft.model, node, [held])
    put(draft.model, [held])
    return True
