"""Nodes that round by a large number: what adds it, and what takes it away again.

`x + 1.5·2²³ − 1.5·2²³` is the nearest integer to x in 32 bits, and x itself in the real numbers that rules are about.
"""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

LARGE = 2.0**20
"""From it on a number that is added takes digits away from what is around 1 in 32 bits."""

Number = Callable[[ir.Value], float | None]
"""The one number that a constant holds, if a value is such."""


def is_of_a_rounding(node: ir.Node, number: Number) -> bool:
    """Whether a node adds a large number that one behind it takes away, or is that one."""
    added = _added(node, number)
    if added is None or abs(added) < LARGE:
        return False
    before = [producer for v in node.inputs if v is not None and (producer := v.producer()) is not None]
    behind = [user for v in node.outputs for user, _ in v.uses()]
    return any(_added(other, number) == -added for other in (*before, *behind))


def _added(node: ir.Node, number: Number) -> float | None:
    """The number that a node adds; one that it takes away is negative."""
    values = [v for v in node.inputs if v is not None]
    if node.op_type not in ("Add", "Sub") or len(values) != 2:
        return None
    if node.op_type == "Sub":
        taken = number(values[1])
        return None if taken is None else -taken
    return next((n for n in map(number, values) if n is not None), None)
