"""Outputs that are what a logistic function gives, and how exact that is.

`1 / (1 + e⁻ˣ)` is computed as 1/2 and something: near 0 it is as exact as around 1/2, and no better. Of −13 onnxruntime
1.32 gives one of six numbers for all arguments that are up to 0.001 apart, each up to 6 % from what it should be.
"""

from __future__ import annotations

import onnx_ir as ir

from superopt.onnx_io.inlining import inlined
from superopt.onnx_io.operator_kinds import MOVES
from superopt.onnx_io.skeleton import ONNX_DOMAIN

LOGISTIC_ERROR = 2.0**-23
"""How far a value may be from what it should be: onnxruntime 1.32 was 1.13·10⁻⁷ off at most, between −25 and −3."""

_AS_IT_IS = frozenset({*MOVES, "Split"})
"""What gives values of its first input."""


def logistic_outputs(model: ir.Model) -> set[str]:
    """The names of outputs with values that a logistic function gave."""
    return {value.name or "" for value in inlined(model).graph.outputs if _is_logistic(value)}


def _is_logistic(value: ir.Value | None) -> bool:
    while value is not None and (node := value.producer()) is not None and node.domain in ONNX_DOMAIN:
        if node.op_type == "Concat":
            return any(_is_logistic(v) for v in node.inputs)
        if node.op_type not in _AS_IT_IS:
            return node.op_type == "Sigmoid"
        value = node.inputs[0]
    return False
