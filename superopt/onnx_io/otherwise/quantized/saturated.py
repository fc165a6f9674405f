"""Hard sigmoids between quantized values: sums with a number, as what is quantized has bounds of its own.

`max(0, min(1, αx + β))` of a byte is another byte, which is quantized of αx + β as well where 0 and 1 are the ends of
what bytes stand for. onnxruntime has no operator on bytes for the one, and computes it in 32-bit numbers: 0.56 ns for
each number, and 0.13 for a sum on bytes. Which byte it is has to be the same for all 256: as β is often half a step
off, slope and sum are moved by as little as puts all of them well away from the middle between two steps.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from superopt.dim import product
from superopt.onnx_io.otherwise.reading import shape_of
from superopt.onnx_io.program import Program
from superopt.onnx_io.replacing import Draft, Put
from superopt.onnx_io.said import held, is_a, real
from superopt.onnx_io.surgery import bury, let_go

LEAST = 2**10
"""Of fewer numbers nodes take longer to start than they save."""

TURNED, TRIED, CLEAR = 0.002, 81, 2**-9
"""The slope is changed by such a part at most, in so many ways, and what is rounded is so far from the middle: more
than what 32-bit numbers round below 2⁸.
"""


class _Sum(NamedTuple):
    """By which scale bytes count, and which number is added to them."""

    scale: float
    added: float


def saturated(program: Program) -> dict[int, Put]:
    """How to compute such hard sigmoids, by their places."""
    found = ((place, _sum(program, node)) for place, node in enumerate(program.model.graph))
    return {place: partial(_put, one) for place, one in found if one is not None}


def _sum(program: Program, node: ir.Node) -> _Sum | None:
    """The sum that gives the same byte as a node, whatever byte it reads; None where there is none, or too few."""
    if not is_a(node, "HardSigmoid") or node.outputs[0].is_graph_output():
        return None
    maker = None if node.inputs[0] is None else node.inputs[0].producer()
    users = [user for user, _ in node.outputs[0].uses()]
    many = product(shape_of(program, node.outputs[0]) or (0,))
    if not is_a(maker, "DequantizeLinear") or not all(is_a(u, "QuantizeLinear") for u in users):
        return None
    given, told = _steps(maker), {_steps(user) for user in users}
    if given is None or len(told) != 1 or (isinstance(many, int) and many < LEAST):
        return None
    to = told.pop()
    slope, at_0 = (real(node, name, default) for name, default in (("alpha", 0.2), ("beta", 0.5)))
    return None if to is None or slope <= 0 else _fitted(given, to, slope, at_0)


class _Steps(NamedTuple):
    """What bytes without a sign stand for."""

    scale: float
    zero: int


def _steps(node: ir.Node) -> _Steps | None:
    """What the bytes that a node reads or gives stand for, where that is the same for all of them."""
    scale, zero = (held(value) for value in [*node.inputs, None, None][1:3])
    if scale is None or zero is None or zero.dtype != ir.DataType.UINT8 or scale.dtype != ir.DataType.FLOAT:
        return None
    is_one = scale.numpy().size == 1 and zero.numpy().size == 1 and float(scale.numpy().reshape(-1)[0]) > 0
    return _Steps(float(scale.numpy().reshape(-1)[0]), int(zero.numpy().reshape(-1)[0])) if is_one else None


def _fitted(given: _Steps, to: _Steps, slope: float, at_0: float) -> _Sum | None:
    """The sum that gives the same of all 256, none of which is near the middle between two steps."""
    each = np.arange(256) - given.zero
    inner = np.float32(slope) * (each.astype(np.float32) * np.float32(given.scale)) + np.float32(at_0)
    shares = np.clip(inner, np.float32(0), np.float32(1)) / np.float32(to.scale)
    wanted = np.clip(np.rint(shares) + to.zero, 0, 255)
    best, found = CLEAR, None
    for turned in np.linspace(1 - TURNED, 1 + TURNED, TRIED):
        rest = wanted - turned * slope * given.scale / to.scale * each
        low, high = rest[wanted > 0].max(initial=-np.inf) - 0.5, rest[wanted < 255].min(initial=np.inf) + 0.5
        added = (low + high) / 2 - to.zero
        if (high - low) / 2 > best and 0 < added < np.inf:
            best, found = (high - low) / 2, _Sum(turned * slope * given.scale, added * to.scale)
    return found


def _put(of: _Sum, draft: Draft, node: ir.Node) -> bool:
    """Let bytes count by a scale, and a number be added."""
    value = node.inputs[0]
    maker = None if value is None else value.producer()
    if value is None or maker is None or maker.inputs[0] is None or maker.inputs[2] is None:
        return False
    made = draft.nodes("sum")
    scale, added = (made.held(np.array(number, np.float32)) for number in of)
    scaled = made.node("DequantizeLinear", [maker.inputs[0], scale, maker.inputs[2]])
    one, zero = (made.held(np.array(number, np.uint8)) for number in (1, 0))
    number = made.node("DequantizeLinear", [one, added, zero])
    total = made.node("Add", [scaled, number])
    draft.model.graph.insert_before(node, made.nodes)
    node.outputs[0].replace_all_uses_with(total)  # which has another name, as it is more than 1 where that was 1
    read = let_go(node)
    draft.model.graph.remove(node)
    bury(draft.model, read)
    return True
