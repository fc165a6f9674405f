"""What is left to chance: outputs that are others each time the model runs, so that they cannot be compared."""

from __future__ import annotations

import onnx_ir as ir

from superopt.onnx_io.constants import RANDOM
from superopt.onnx_io.program import Program
from superopt.onnx_io.said import input_of
from superopt.onnx_io.skeleton import ONNX_DOMAIN, subgraphs


def left_to_chance(program: Program) -> list[str]:
    """The outputs that depend on a random operator without a seed, in a subgraph or a function too."""
    drawn: set[str] = set()
    for step in program.steps:
        if drawn.intersection(step.inputs) or _draws(step.node, program):
            drawn.update(step.outputs)
    return [name for name in program.outputs if name in drawn]


def _draws(node: ir.Node, program: Program) -> bool:
    function = program.model.functions.get(node.op_identifier())
    within = [*(function or ()), *(n for g in subgraphs(node) for n in g)]
    return _is_random(node, program) or any(_draws(n, program) for n in within)


def _is_random(node: ir.Node, program: Program) -> bool:
    if node.op_type not in RANDOM or node.domain not in ONNX_DOMAIN or "seed" in node.attributes:
        return False
    if node.op_type != "Dropout":
        return True
    training = input_of(node, 2)
    if training is None or not training.name:
        return False
    return training.name not in program.constants or bool(program.data(training.name))
