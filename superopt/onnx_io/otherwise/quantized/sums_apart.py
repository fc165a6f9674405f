"""Products of bytes that give numbers, with a constant added: apart from the sum, which keeps them in 32 bits.

Those who quantize what layers read, and not what they give, write a product and a sum behind it. onnxruntime 1.32 makes
one Gemm of both before it looks for products of bytes, and of these has none that adds numbers: so it makes numbers of
all bytes, of the weights in each run. 197 rows of 384 by 1,536 take 2.15 ms, and 0.35 where the constant is taken off
with its sign turned round, which gives the same to the last bit; one row of 768 by 768 takes 0.75 ms, and 0.012. What
is written as one Gemm stays, as it adds the constant first: a product that rounds otherwise is another byte in the end.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from superopt.arithmetic.carrier import Array
from superopt.onnx_io.in_bytes import becomes_bytes
from superopt.onnx_io.order import is_read_once
from superopt.onnx_io.otherwise.quantized.bytes import all_are_exact
from superopt.onnx_io.otherwise.quantized.regions import dequantizing
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import data_of, shape_of
from superopt.onnx_io.replacing import Draft, Put, of_nodes
from superopt.onnx_io.said import held, input_of, is_a

_BYTES = ("int8", "uint8")


class _Sum(NamedTuple):
    """A product of bytes, and what is added to it."""

    product: ir.Node
    added: Array


def sums_apart(program: Program) -> dict[int, Put]:
    """How to add constants apart from products, by the places of what adds them."""
    found = of_nodes(program, partial(_sum, program))
    return {place: partial(_put, program) for place in found} if found and all_are_exact(program) else {}


def _sum(program: Program, node: ir.Node) -> _Sum | None:
    """What a node adds to a product of bytes, if the sum is not quantized again; None where it does no such thing."""
    for i in (0, 1) if is_a(node, "Add") else ():
        value = node.inputs[i]
        product = None if value is None else value.producer()
        if value is None or product is None or not is_a(product, "MatMul") or product.graph is not node.graph:
            continue
        if is_read_once(value):
            return _known(program, product, node.inputs[1 - i], node)
    return None


def _known(program: Program, product: ir.Node, constant: ir.Value | None, node: ir.Node) -> _Sum | None:
    """The sum of a product and a row of constants, where bytes of one scale are multiplied by constant ones."""
    added, shape = data_of(program, constant), shape_of(program, node.outputs[0])
    if added is None or not shape or becomes_bytes(node) or not (_is_of_bytes(product, 0) and _is_of_bytes(product, 1)):
        return None
    maker = dequantizing(product, 1)
    weights = None if maker is None else held(maker.inputs[0])
    is_row = added.dtype == np.float32 and added.shape in ((shape[-1],), (1, shape[-1])) and added.ndim <= len(shape)
    return _Sum(product, added) if is_row and weights is not None and len(weights.shape.numpy()) == 2 else None


def _is_of_bytes(node: ir.Node, which: int) -> bool:
    """Whether numbers of 32 bits that a node reads are made of bytes; those that it reads first by one scale."""
    maker = dequantizing(node, which)
    scale, zero = (None, None) if maker is None else (held(input_of(maker, 1)), held(input_of(maker, 2)))
    if scale is None or zero is None or scale.dtype != ir.DataType.FLOAT:
        return False
    return zero.numpy().dtype.name in _BYTES and (which == 1 or scale.numpy().size == 1)


def _put(program: Program, draft: Draft, node: ir.Node) -> bool:
    """Take off the product what is added, with its sign turned round."""
    found = _sum(program, node)
    if found is None:
        return False
    made = draft.nodes("apart")
    result = made.node("Sub", [found.product.outputs[0], made.held(-found.added)])
    return draft.replace(node, made, [result])
