"""Nodes that round by a large number: what adds it, and what takes it away again.

`x + 1.5·2²³ − 1.5·2²³` is the nearest integer to x in 32 bits, and x itself in the real numbers that rules are about.
"""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

LARGE = 2.0**20
"""From it on a number that is added takes digits away from what is around 1 in 32 bits."""

Number = Callable[[str], float | None]
"""The one number that a constant of a name holds, if there is such."""


def is_of_a_rounding(node: ir.Node, number: Number) -> bool:
    """Whether a node adds a large number that one behind it takes away, or is that one."""
    before = [producer for v in node.inputs if v is not None and (producer := v.producer()) is not None]
    behind = [user for v in node.outputs for user, _ in v.uses()]
    return any(_takes_back(b, node, number) for b in before) or any(_takes_back(node, b, number) for b in behind)


def _takes_back(first: ir.Node, second: ir.Node, number: Number) -> bool:
    if {first.op_type, second.op_type} != {"Add", "Sub"}:
        return False
    added, taken = (_moved_by(node, number) for node in (first, second))
    return added is not None and added == taken and abs(added) >= LARGE


def _moved_by(node: ir.Node, number: Number) -> float | None:
    """The number that a node adds, or takes away."""
    names = [v.name or "" for v in node.inputs if v is not None]
    found = [n for n in map(number, names[1:] if node.op_type == "Sub" else names) if n is not None]
    return found[0] if found else None
