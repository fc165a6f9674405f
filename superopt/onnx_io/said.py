"""What nodes say: by attributes, and by constants that they read."""

from __future__ import annotations

from typing import TypeGuard

import onnx_ir as ir
from onnx_ir.convenience import get_const_tensor

from superopt.onnx_io.skeleton import ONNX_DOMAIN


def is_a(node: ir.Node | None, *op_types: str) -> TypeGuard[ir.Node]:
    """Whether there is a node, and it is of one of these of ONNX's own operators."""
    return node is not None and node.op_type in op_types and node.domain in ONNX_DOMAIN


def number(node: ir.Node, name: str, default: int) -> int:
    """What an attribute says; the default, too, where it is no integer, as types were names before opset 6."""
    told = node.attributes.get(name)
    return default if told is None or told.type != ir.AttributeType.INT else told.as_int()


def real(node: ir.Node, name: str, default: float) -> float:
    """The same of a floating-point number."""
    return node.attributes[name].as_float() if name in node.attributes else default


def text(node: ir.Node, name: str, default: str = "") -> str:
    """The same of a text."""
    return node.attributes[name].as_string() if name in node.attributes else default


def permuted(node: ir.Node, rank: int) -> list[int]:
    """The order in which a Transpose has the axes of what it reads, of this rank."""
    return list(node.attributes["perm"].as_ints()) if "perm" in node.attributes else list(range(rank))[::-1]


def concat_axis(join: ir.Node) -> int:
    """The axis along which a Concat joins: before opset 4 it need not say that."""
    return number(join, "axis", 1)


def scanned(loop: ir.Node) -> int:
    """How many of its inputs, the last, a Scan goes through; a Loop none."""
    return number(loop, "num_scan_inputs", 0)


def input_of(node: ir.Node, place: int) -> ir.Value | None:
    """What a node reads at a place; None where that is left out."""
    return node.inputs[place] if len(node.inputs) > place else None


def is_scaled(node: ir.Node) -> bool:
    """Whether a Gemm scales what it multiplies, or what it adds, if it adds anything."""
    names = ("alpha", "beta") if input_of(node, 2) is not None else ("alpha",)
    return any(real(node, name, 1.0) != 1.0 for name in names)


def listed(node: ir.Node, name: str) -> list[int] | None:
    """Integers that an attribute lists, or later a constant second input, which may be one number without axes; none
    where neither is given, None where they are computed.
    """
    if name in node.attributes:
        return list(node.attributes[name].as_ints())
    if (given := input_of(node, 1)) is None:
        return []
    data = held(given)
    return None if data is None else [int(i) for i in data.numpy().reshape(-1)]


def held(value: ir.Value | None) -> ir.TensorProtocol | None:
    """The data of a constant; None of an input, whose data is what is taken where none is given."""
    return None if value is None or value.is_graph_input() else get_const_tensor(value)
