"""Whether a processor adds up products of bytes as they are, and bytes without a sign for those with one.

x86 processors from before VNNI multiply a byte without a sign by one with a sign and add up two such products in 16
bits, which stay there where these are too few. onnxruntime's kernels do so, and say so.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from superopt.arithmetic.carrier import Array
from superopt.onnx_io.naming import values
from superopt.onnx_io.program import Program
from superopt.onnx_io.said import held, input_of, is_a
from superopt.processor import flags, is_x86

SMALL = 64
"""Two products of a byte without a sign and one that is no larger have room in 16 bits."""

HALF = 128
"""What is between the integers of a byte with a sign and of one without, that stand for the same number."""


def unsigned(data: Array) -> Array:
    """Bytes without a sign that stand for the numbers of those with one."""
    return np.asarray(np.asarray(data, np.int16) + HALF, np.uint8)


def signed(data: Array) -> Array:
    """Bytes with a sign that stand for the numbers of those without."""
    return np.asarray(np.asarray(data, np.int16) - HALF, np.int8)


def zeros(node: ir.Node, which: int, dtype: type[np.generic]) -> Array | None:
    """Which bytes stand for 0 of those that a node reads, by its input in a place; where that is left out 0 itself, for
    each of its scales. None where that is computed.
    """
    given = input_of(node, which)
    scaled = node.inputs[1] if node.op_type == "DequantizeLinear" else None
    told = held(scaled if given is None else given)
    if given is None:
        return np.zeros((), dtype) if scaled is None else None if told is None else np.zeros(told.shape.numpy(), dtype)
    return None if told is None else told.numpy()


def are_exact(weights: Array) -> bool:
    """Whether products of bytes without a sign and these, that have one, are added up as they are."""
    return adds_up_products() or bool((np.abs(weights.astype(np.int16)) <= SMALL).all())


def all_are_exact(program: Program) -> bool:
    """Whether that is so of all weights of bytes with a sign."""
    if adds_up_products():
        return True
    constants = (held(value) for value in values(program.model.graph))
    return all(are_exact(one.numpy()) for one in constants if one is not None and one.dtype == ir.DataType.INT8)


def saturates_elsewhere(program: Program) -> bool:
    """Whether a program adds up products of bytes that processors without VNNI do not, and the model as it stands has
    none of these.
    """
    return program.plain is not None and _may_saturate(program.model) and not _may_saturate(program.plain)


def _may_saturate(model: ir.Model) -> bool:
    """Whether bytes without a sign may be multiplied by such with one that are not small."""
    if not any(_gives_unsigned(node) for node in model.graph):
        return False
    constants = (held(value) for value in values(model.graph))
    return any(
        one.dtype == ir.DataType.INT8 and bool((np.abs(one.numpy().astype(np.int16)) > SMALL).any())
        for one in constants
        if one is not None
    )


def _gives_unsigned(node: ir.Node) -> bool:
    zero = held(input_of(node, 2)) if is_a(node, "QuantizeLinear") else None
    is_told = zero is not None and zero.dtype == ir.DataType.UINT8
    return is_told or is_a(node, "DynamicQuantizeLinear")


def adds_up_products() -> bool:
    """Whether this processor has room for sums of products of any bytes; false where that is not known."""
    return not is_x86() or not {"avx512_vnni", "avx_vnni"}.isdisjoint(flags())
