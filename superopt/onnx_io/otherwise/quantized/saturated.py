"""Hard sigmoids, and what is rectified or cut, between quantized values: sums with a number, as bytes have bounds.

`max(0, min(1, αx + β))` of a byte is another byte, which is quantized of αx + β as well where 0 and 1 are the ends of
what bytes stand for. onnxruntime has no operator on bytes for the one, and computes it in 32-bit numbers: 0.56 ns for
each number, and 0.13 for a sum on bytes. Which byte it is has to be the same for all 256: as β is often half a step
off, slope and sum are moved by as little as puts all of them well away from the middle between two steps. Quantizers
that keep the byte of 0 in the middle leave a Relu or a Clip between two pairs with steps of their own: a sum as well,
whose bytes are bounded then.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import onnx_ir as ir

from superopt.dim import product
from superopt.onnx_io.otherwise.quantized.bounded import OPSET, bound
from superopt.onnx_io.otherwise.quantized.each_byte import Chain, chain, is_one_operator, numbers_of
from superopt.onnx_io.otherwise.quantized.fitted import Line, fitted
from superopt.onnx_io.otherwise.quantized.unsigned_values import becomes_unsigned
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import shape_of
from superopt.onnx_io.replacing import Draft, Put, of_nodes
from superopt.onnx_io.said import is_a
from superopt.onnx_io.skeleton import opset_of
from superopt.onnx_io.surgery import bury

LEAST = 2**10
"""Of fewer numbers nodes take longer to start than they save."""


def saturated(program: Program) -> dict[int, Put]:
    """How to compute such functions of bytes, by the places of what quantizes."""
    return {place: partial(_put, program, line) for place, line in of_nodes(program, partial(_line, program)).items()}


def _line(program: Program, node: ir.Node) -> Line | None:
    """The line that gives the bytes that a node quantizes to, of other bytes; None where there is none, or too few."""
    found = chain(program, node) if is_a(node, "QuantizeLinear") else None
    many = product(shape_of(program, node.outputs[0]) or (0,))
    if found is None or is_one_operator(found) or (isinstance(many, int) and many < LEAST):
        return None
    given, to = found.given, found.to
    bytes_of = found.making.inputs[0]
    if given.dtype != to.dtype or min(given.scale, to.scale) <= 0 or bytes_of is None:
        return None
    if given.dtype == "int8" and becomes_unsigned(program, bytes_of):
        return None
    low, high = given.ends
    numbers = numbers_of(program, found)
    own, wanted = np.arange(low, high + 1), to.bytes(numbers)
    if not np.isfinite(wanted).all():
        return None
    ends = int(wanted.min()), int(wanted.max())
    if given == to and np.array_equal(wanted, np.clip(own, *ends)) and _has_bounds(program):
        return Line(1.0, 0.0, *ends)
    steps = numbers.astype(np.float64) / to.scale
    line = fitted(own - given.zero, steps, wanted, to.zero, to.ends)
    return line if line is not None and ((line.low, line.high) == to.ends or _has_bounds(program)) else None


def _has_bounds(program: Program) -> bool:
    return opset_of(program.model) >= OPSET


def _put(program: Program, line: Line, draft: Draft, node: ir.Node) -> bool:
    """Let bytes count by a scale, and a number be added; and what comes of it be bounded."""
    found, value = chain(program, node), node.inputs[0]
    if found is None or value is None or found.making.inputs[0] is None:
        return False
    if found.given == found.to and line[:2] == (1.0, 0.0):
        return _bounded(found, line, draft)
    made, steps = draft.nodes("sum"), np.array([line.slope, abs(line.added)]) * found.to.scale
    scale, added = (made.held(np.array(number or found.to.scale, np.float32)) for number in steps)
    scaled = made.node("DequantizeLinear", [found.making.inputs[0], scale, made.held(_byte(found, found.given.zero))])
    one, zero = (made.held(_byte(found, byte)) for byte in _one(line.added))
    number = made.node("DequantizeLinear", [one, added, zero])
    total = made.node("Add", [scaled, number])
    draft.model.graph.insert_before(node, made.nodes)
    node.replace_input_with(0, total)
    low, high = found.to.ends
    if (line.low, line.high) != (low, high):
        bound(draft, node, line.low if line.low > low else None, line.high if line.high < high else None)
    bury(draft.model, [value])
    return True


def _bounded(found: Chain, line: Line, draft: Draft) -> bool:
    """Let bytes be bounded as they are."""
    made, bytes_of = draft.nodes("bounded"), found.making.inputs[0]
    if bytes_of is None:
        return False
    result = made.node("Clip", [bytes_of, *(made.held(_byte(found, end)) for end in (line.low, line.high))])
    return draft.replace(found.quantizing, made, [result])


def _one(added: float) -> tuple[int, int]:
    """A byte and that of 0, which is less by one, or more where something is taken off; or the same."""
    return (int(added > 0), int(added < 0))


def _byte(found: Chain, byte: int) -> np.ndarray:
    return np.array(byte, found.given.dtype)
