"""Networks that shuffle channels between convolutions: each convolution makes and reads those that it needs, in blocks.

ShuffleNet V2 (Ma et al. 2018) splits the channels of each unit in halves, computes the one, joins both, and shuffles
them, as do NanoDet and Lite-HRNet. That is of no channel a computation, and takes up to a third of the time: channels
are copied three times, and as 58 of them are no whole blocks, laid out anew each time. Which channels a convolution
reads is known, however, and in which order it makes them is free. So those that are read by the same convolutions are
made beside each other, in whole blocks that are filled up with zeros; what reads joins those blocks of which it needs
channels, with weights that are zero for all others. Nothing is shuffled then, and nothing split. That a channel that
nothing reads is infinite, or no number, would be seen: what is computed of finite numbers is the same but for rounding.
"""

from __future__ import annotations

from functools import partial

import onnx_ir as ir

from superopt.onnx_io.otherwise.shuffled.paying import cost_of
from superopt.onnx_io.otherwise.shuffled.plan import Plan, plan_of
from superopt.onnx_io.otherwise.shuffled.sources import Sources, sources_of
from superopt.onnx_io.otherwise.shuffled.written import Writer
from superopt.onnx_io.program import Program
from superopt.onnx_io.replacing import Draft, Put
from superopt.onnx_io.said import is_a
from superopt.onnx_io.skeleton import opset_of

NORMED = 7
"""The opset from which on norms and slopes are what they are now."""


def shuffled(program: Program) -> dict[int, Put]:
    """How to let convolutions make and read channels such that nothing shuffles them, by the place of the first."""
    if opset_of(program.model) < NORMED or not any(is_a(node, "Transpose", "Gather") for node in program.model.graph):
        return {}
    sources = sources_of(program)
    plan = plan_of(program, sources)
    if plan is None or cost_of(program, sources, plan) >= 0:
        return {}
    return {min(sources.each[i].places[0] for i in plan.reads): partial(_put, program, sources, plan)}


def _put(program: Program, sources: Sources, plan: Plan, draft: Draft, _: ir.Node) -> bool:
    Writer(program, sources, plan, draft).write()
    return True
