"""Values that are rectified or cut and quantized then: bytes are bounded instead, behind what quantizes.

Where the lowest byte stands for 0, quantizing rectifies, and runtimes find what they compute in bytes. Where bytes lie
evenly around 0, as TensorRT wants them and training for it writes them, a Relu stands between a convolution and what
quantizes, and onnxruntime 1.32 computes that convolution in 32 bits. So it does where what is cut at 6 is quantized by
steps of a width that goes beyond 6 by a rounding. What quantizes never falls, so that the byte of what is between two
numbers is between the bytes of these; and where these are the ends of what bytes stand for, nothing is left to bound.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from superopt.onnx_io.order import is_read_once
from superopt.onnx_io.otherwise.quantized.bytes import adds_up_products
from superopt.onnx_io.otherwise.quantized.regions import dequantizing
from superopt.onnx_io.otherwise.quantized.stepping import steps_of
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import bounds_of, data_of
from superopt.onnx_io.replacing import Draft, Put, of_nodes
from superopt.onnx_io.said import is_a
from superopt.onnx_io.skeleton import opset_of
from superopt.onnx_io.surgery import bury, pass_on

OPSET = 13
"""From this on bytes can be bounded."""


class _Within(NamedTuple):
    """What quantizes, and the lowest and highest byte that it gives where it has others as well."""

    node: ir.Node
    low: int | None
    high: int | None

    @property
    def is_all(self) -> bool:
        """Whether it has no others."""
        return self.low is None and self.high is None


def bounded(program: Program) -> dict[int, Put]:
    """How to bound bytes, by the places of what rectifies or cuts numbers."""
    found = of_nodes(program, partial(_quantizing, program))
    return {place: partial(_put, program) for place, some in found.items() if some}


def _quantizing(program: Program, node: ir.Node) -> list[_Within]:
    """All that reads what a node gives, if that is quantized, and is what an operator of bytes gives, within bounds."""
    bounds = bounds_of(program, node)
    value = None if bounds is None else node.inputs[0]
    maker = None if value is None else value.producer()
    if bounds is None or value is None or maker is None or maker.graph is not node.graph:
        return []
    if not _is_of_bytes(program, maker) or not is_read_once(value) or node.outputs[0].is_graph_output():
        return []
    found = [_within(user, node, bounds) for user, _ in node.outputs[0].uses()]
    known = [one for one in found if one is not None]
    if is_a(node, "Relu") and len(known) == 1 and known[0].is_all:
        return []  # which runtimes leave out by themselves
    has_operator = opset_of(program.model) >= OPSET
    return known if len(known) == len(found) and all(has_operator or one.is_all for one in known) else []


def _is_of_bytes(program: Program, maker: ir.Node) -> bool:
    """Whether runtimes compute what a node does in bytes, if all that it gives is quantized: by itself, or with the
    product that it adds a constant to.
    """
    if is_a(maker, "Conv", "Gemm", "MatMul"):
        return adds_up_products() and _dequantizes(maker)
    if not is_a(maker, "Add", "Mul"):
        return False
    return _dequantizes(maker) or any(_adds_to_product(program, maker, i) for i in (0, 1))


def _adds_to_product(program: Program, node: ir.Node, which: int) -> bool:
    """Whether a node adds a constant to the product of bytes that it reads in a place, as nothing else does."""
    value, other = node.inputs[which], node.inputs[1 - which]
    product = None if value is None else value.producer()
    if product is None or value is None or not is_a(node, "Add") or not is_a(product, "MatMul"):
        return False
    is_own = is_read_once(value) and data_of(program, other) is not None
    return is_own and product.graph is node.graph and adds_up_products() and _dequantizes(product)


def _dequantizes(node: ir.Node) -> bool:
    """Whether both that a node reads first are made of bytes."""
    return all(dequantizing(node, i) is not None for i in (0, 1))


def _within(user: ir.Node, node: ir.Node, bounds: tuple[float, float]) -> _Within | None:
    """What a node comes to that quantizes what another bounds, to bytes by steps of one width; None of any other."""
    steps = steps_of(user) if is_a(user, "QuantizeLinear") and user.graph is node.graph else None
    if steps is None or steps.scale <= 0:
        return None
    low, high = (int(end) for end in steps.bytes(np.array(bounds, np.float32)))
    lowest, highest = steps.ends
    return _Within(user, low if low > lowest else None, high if high < highest else None)


def _put(program: Program, draft: Draft, node: ir.Node) -> bool:
    """Bound the bytes of all that quantizes."""
    found = _quantizing(program, node)
    for user, low, high in found:
        user.replace_input_with(0, node.inputs[0])
        if low is not None or high is not None:
            bound(draft, user, low, high)
    bury(draft.model, [node.outputs[0]])
    return bool(found)


def bound(draft: Draft, quantizing: ir.Node, low: int | None, high: int | None) -> None:
    """Let all that reads the bytes that a node gives read them within bounds."""
    made, bytes_of, steps = draft.nodes("bounded"), quantizing.outputs[0], steps_of(quantizing)
    if steps is None:
        return
    held = [None if end is None else made.held(np.array(end, steps.dtype)) for end in (low, high)]
    (result,) = made.several("Clip", [bytes_of, *(held if high is not None else held[:1])])
    pass_on(bytes_of, result)
    bytes_of.replace_all_uses_with(result, replace_graph_outputs=True)
    made.nodes[-1].replace_input_with(0, bytes_of)
    bytes_of.name, result.name = result.name, bytes_of.name
    draft.model.graph.insert_after(quantizing, made.nodes)
