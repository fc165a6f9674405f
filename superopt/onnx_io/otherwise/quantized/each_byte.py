"""What becomes of each byte between what dequantizes and what quantizes, number by number."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from superopt.arithmetic.carrier import Array
from superopt.onnx_io.order import is_read_once
from superopt.onnx_io.otherwise.quantized.stepping import Steps, steps_of
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import bounds_of, data_of, shape_of
from superopt.onnx_io.said import is_a, real

MOST_NODES = 8
"""Of longer chains nothing is told."""

_ARITHMETIC = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide}


class Chain(NamedTuple):
    """Nodes between what makes numbers of bytes and what quantizes, each of which reads what the one before gives."""

    making: ir.Node
    nodes: tuple[ir.Node, ...]
    quantizing: ir.Node
    given: Steps
    to: Steps


def chain(program: Program, quantizing: ir.Node) -> Chain | None:
    """What a node quantizes, if each of its numbers is made of one byte, and of none but constant ones beside it."""
    to = steps_of(quantizing) if is_a(quantizing, "QuantizeLinear") else None
    value, nodes = quantizing.inputs[0], list[ir.Node]()
    shape = shape_of(program, value)
    while to is not None and shape is not None and value is not None and len(nodes) <= MOST_NODES:
        maker = value.producer()
        if maker is None or maker.graph is not quantizing.graph or shape_of(program, value) != shape:
            return None
        if is_a(maker, "DequantizeLinear"):
            of = steps_of(maker)
            return Chain(maker, tuple(reversed(nodes)), quantizing, of, to) if of is not None else None
        if value.is_graph_output() or (nodes and not is_read_once(value)):
            return None
        nodes.append(maker)
        value = _operand(program, maker)
    return None


def _operand(program: Program, node: ir.Node) -> ir.Value | None:
    """What a node reads that is no constant; None where nothing is told of it."""
    if is_a(node, "HardSigmoid") or bounds_of(program, node) is not None:
        return node.inputs[0]
    if not is_a(node, *_ARITHMETIC):
        return None
    known = [data_of(program, value) for value in node.inputs]
    if [data is None for data in known].count(True) != 1:
        return None
    (data,) = (data for data in known if data is not None)
    return node.inputs[known.index(None)] if data.size == 1 and data.dtype == np.float32 else None


def numbers_of(program: Program, found: Chain) -> Array:
    """The numbers that are quantized of each byte, from the lowest on."""
    low, high = found.given.ends
    numbers = (np.arange(low, high + 1).astype(np.float32) - np.float32(found.given.zero)) * np.float32(
        found.given.scale
    )
    with np.errstate(all="ignore"):
        for node in found.nodes:
            numbers = _applied(program, node, numbers)
    return numbers


def _applied(program: Program, node: ir.Node, numbers: Array) -> Array:
    """What a node makes of numbers of 32 bits."""
    if is_a(node, "HardSigmoid"):
        slope, at_0 = (real(node, name, default) for name, default in (("alpha", 0.2), ("beta", 0.5)))
        return np.asarray(np.clip(np.float32(slope) * numbers + np.float32(at_0), 0, 1), np.float32)
    bounds = bounds_of(program, node)
    if bounds is not None:
        return np.asarray(np.clip(numbers, *np.array(bounds, np.float32)), np.float32)
    read = [numbers if (data := data_of(program, value)) is None else data.reshape(()) for value in node.inputs]
    return np.asarray(_ARITHMETIC[node.op_type](*read), np.float32)


def is_one_operator(found: Chain) -> bool:
    """Whether runtimes compute a chain in bytes as it is, or leave it out."""
    makers = [value.producer() for node in found.nodes for value in node.inputs if value is not None]
    is_known = len(found.nodes) == 1 and is_a(found.nodes[0], "Add", "Mul")
    return not found.nodes or (is_known and all(is_a(maker, "DequantizeLinear") for maker in makers))
