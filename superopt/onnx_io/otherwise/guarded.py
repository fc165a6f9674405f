"""Models that guard a softplus where it is as large as what it is of: it is that by itself.

torch gives x in its place from a threshold on, `where(x > 20, x, ln(1 + eˣ))`, and of a sharper one where x times its
sharpness is, which overflows for no x that means anything; its newer exporter writes that beside ONNX's Softplus, which
does not overflow. From 17 on the two differ by less than the last bit of a 32-bit number, as ln(1 + eˣ) = x +
ln(1 + e⁻ˣ) and e⁻¹⁷ / 17 is below 2⁻²⁴ / 20. Runtimes choose one element after the other: of 512 by 64 that is most of
what a layer takes.
"""

from __future__ import annotations

from functools import partial

import onnx_ir as ir

from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import data_of
from superopt.onnx_io.replacing import Draft, Put, of_nodes
from superopt.onnx_io.said import is_a
from superopt.onnx_io.surgery import replace_node

LEAST = 17.0
"""A threshold below it makes a difference."""

_GREATER, _LESS = ("Greater", "GreaterOrEqual"), ("Less", "LessOrEqual")


def guarded(program: Program) -> dict[int, Put]:
    """How to do without the guard, by the places of what chooses."""
    return dict.fromkeys(of_nodes(program, partial(_softplus, program)), partial(_put, program))


def _softplus(program: Program, node: ir.Node) -> ir.Value | None:
    """What a node gives but where it gives what that is as large as."""
    known = program.term(node.outputs[0]) if is_a(node, "Where") else None
    if known is None or known.type.dtype != "float32":
        return None
    condition, x, y = node.inputs
    of = _above(program, condition)
    if of is None or x is None or y is None or program.term(y) is None:
        return None
    if program.values[y.name or ""].shape != known.shape:
        return None
    plain = of is x and is_a(made := y.producer(), "Softplus") and made.inputs[0] is x
    return y if plain or _is_sharper(program, of, x, y) else None


def _above(program: Program, condition: ir.Value | None) -> ir.Value | None:
    """The value that is to be above a threshold."""
    node = None if condition is None else condition.producer()
    if not is_a(node, *_GREATER, *_LESS):
        return None
    of, threshold = node.inputs if node.op_type in _GREATER else node.inputs[::-1]
    number = _number(program, threshold)
    return of if number is not None and number >= LEAST else None


def _is_sharper(program: Program, of: ir.Value, x: ir.Value, y: ir.Value) -> bool:
    """Whether a value is the softplus of x times a number, over that."""
    scaled, divided = of.producer(), y.producer()
    if not is_a(scaled, "Mul") or not is_a(divided, "Div") or x not in scaled.inputs:
        return False
    (other,) = [v for v in scaled.inputs if v is not x] or [None]
    below = None if divided.inputs[0] is None else divided.inputs[0].producer()
    numbers = [_number(program, v) for v in (other, divided.inputs[1])]
    is_scaled = numbers[0] is not None and numbers[0] > 0.0 and numbers[0] == numbers[1]
    return is_scaled and is_a(below, "Softplus") and below.inputs[0] is of


def _number(program: Program, value: ir.Value | None) -> float | None:
    """A constant number."""
    data = data_of(program, value)
    return float(data.reshape(-1)[0]) if data is not None and data.size == 1 else None


def _put(program: Program, draft: Draft, node: ir.Node) -> bool:
    found = _softplus(program, node)
    if found is not None:
        replace_node(draft.model, node, [found])
    return found is not None
