"""Hard sigmoids in steps, as one operator: `clip(x + 3, 0, 6) / 6`, alone and as a factor, and `clip(x/5 + 1/2, 0, 1)`.

Paddle's and MXNet's exporters, and TensorFlow's, write hard sigmoids and hard swishes so (Howard et al. 2019), and
so does torch below opset 14. onnxruntime 1.32 reads and writes a value for each step: MobileNetV3 takes 1.2 times as
long with them. It has one kernel for hard sigmoids, which it also computes with a convolution before it.
"""

from __future__ import annotations

from functools import partial
from math import isclose
from typing import NamedTuple

import onnx_ir as ir

from superopt.onnx_io.otherwise.spelled.steps import Led, beside, is_wide, step_before
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import bounds_of
from superopt.onnx_io.replacing import Draft, Put, of_nodes
from superopt.onnx_io.said import input_of, is_a

FARTHEST, STEEPEST = 2.0**3, 2.0**20
"""Numbers are added to round what they are added to, too: large ones are no part of a hard sigmoid."""

CLOSE = 1e-6
"""How far a sixth that is written as a number may be from one."""


class Line(NamedTuple):
    """`slope·x + shift`."""

    slope: float
    shift: float
    x: Led


class Hard(NamedTuple):
    """What a hard sigmoid is of, and what it multiplies, if it does."""

    line: Line
    factor: Led | None = None


def hard_sigmoids(program: Program) -> dict[int, Put]:
    """How to write hard sigmoids as such, by the places of their last steps."""
    return {place: partial(_put, hard) for place, hard in of_nodes(program, partial(_hard, program)).items()}


def _hard(program: Program, node: ir.Node) -> Hard | None:
    """The hard sigmoid that ends here, or its product with something."""
    if not is_a(node, "Clip", "Div", "Mul") or not is_wide(program, node.outputs[0], "float32"):
        return None
    if is_a(node, "Clip"):
        line = _cut(program, node, 1.0)
        return None if line is None else Hard(line)
    found = beside(program, node, "Mul", "Div")
    if found is None or not found.number or (is_a(node, "Div") and found.place):
        return None
    share = found.number if is_a(node, "Mul") else 1 / found.number
    step, own = step_before(found.value), (found.place,)
    if step is not None and (line := _cut(program, step, share)) is not None:
        return Hard(_behind(own, line))
    if not is_a(step, "Mul"):
        return None
    for place in (0, 1):
        cut, factor = (input_of(step, at) for at in (place, 1 - place))
        before = None if cut is None else step_before(cut)
        if factor is not None and before is not None and (line := _cut(program, before, share)) is not None:
            return Hard(_behind((*own, place), line), Led(factor.name or "", (*own, 1 - place)))
    return None


def _behind(path: tuple[int, ...], line: Line) -> Line:
    """A line of what lies so many steps before another node."""
    return line._replace(x=Led(line.x.name, path + line.x.path))


def _cut(program: Program, node: ir.Node, share: float) -> Line | None:
    """The line of which a Clip takes what is between 0 and 1, once it is scaled; None where it is of no line."""
    bounds = bounds_of(program, node) if is_a(node, "Clip") else None
    if bounds is None or bounds[0] != 0 or not isclose(bounds[1] * share, 1, rel_tol=CLOSE):
        return None
    line = _line(program, node)
    if line is None or not abs(line.shift * share) <= FARTHEST or not abs(line.slope * share) <= STEEPEST:
        return None
    return Line(line.slope * share, line.shift * share, line.x)


def _line(program: Program, clip: ir.Node) -> Line | None:
    """What a Clip reads, as a line of what goes into the steps before it."""
    slope, shift, path, name = 1.0, None, [0], ""
    step = None if clip.inputs[0] is None else step_before(clip.inputs[0])
    while (found := beside(program, step, "Add", "Sub", "Mul", "Div")) is not None and step is not None:
        name, number = found.value.name or "", found.number
        path.append(found.place)
        if is_a(step, "Mul", "Div"):
            if is_a(step, "Div") and (found.place or not number):
                return None
            slope *= number if is_a(step, "Mul") else 1 / number
        elif shift is not None:
            return None
        elif is_a(step, "Sub"):
            shift, slope = (slope * number, -slope) if found.place else (-slope * number, slope)
        else:
            shift = slope * number
        step = step_before(found.value)
    return None if shift is None else Line(slope, shift, Led(name, tuple(path)))


def _put(hard: Hard, draft: Draft, node: ir.Node) -> bool:
    made, of = draft.nodes("hard"), hard.line.x.of(node)
    factor = None if hard.factor is None else hard.factor.of(node)
    if of is None or (factor is None) != (hard.factor is None):
        return False
    said = [ir.AttrFloat32("alpha", hard.line.slope), ir.AttrFloat32("beta", hard.line.shift)]
    result = made.node("HardSigmoid", [of], said)
    return draft.replace(node, made, [result if factor is None else made.node("Mul", [factor, result])])
