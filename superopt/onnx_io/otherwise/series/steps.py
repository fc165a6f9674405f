"""Models that multiply all steps of a series by a matrix at once, and not each step when it is its turn.

A recurrent cell that a script calls step by step is written out by exporters: `W·x[t]` for each `t`, between what the
steps make of their states. That is one product of the series, of which steps are taken: the matrix is read once (as
cuDNN has it, Appleyard et al. 2016). The products stand too far apart for any piece to have several of them.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import onnx_ir as ir

from superopt.errors import InvalidModel
from superopt.onnx_io.otherwise.linear import LEAST_STEPS, are_few, is_linear, layer, multiplied
from superopt.onnx_io.program import Program
from superopt.onnx_io.replacing import Draft, Put
from superopt.onnx_io.said import is_a, number


class Step(NamedTuple):
    """A product of one step of a series along an axis."""

    node: ir.Node
    series: ir.Value
    axis: int
    at: int


def steps(program: Program) -> dict[int, Put]:
    """How to multiply all steps at once, by the places of the first products of series."""
    places, found = {node: i for i, node in enumerate(program.model.graph)}, dict[int, Put]()
    for group in _groups(program):
        if pays(program, group):
            found[min(places[step.node] for step in group)] = partial(_multiply, program)
    return found


def _groups(program: Program) -> list[list[Step]]:
    """Products of steps of the same series by the same matrices."""
    found: dict[object, list[Step]] = {}
    for node in program.model.graph:
        step = step_of(program, node, node.inputs[0]) if node.inputs[:1] else None
        if step is not None and is_linear(program, node, program.values[step.series.name or ""].type.rank - 1):
            found.setdefault((step.series, step.axis, layer(node)), []).append(step)
    return list(found.values())


def step_of(program: Program, node: ir.Node, value: ir.Value | None) -> Step | None:
    """What a node reads as a step of a series, if it is one that is known."""
    take = value.producer() if value is not None else None
    if not is_a(take, "Gather") or None in take.inputs:
        return None
    series, at = take.inputs
    assert series is not None
    assert at is not None
    known, place = program.term(series), _number(program, at)
    if known is None or place is None:
        return None
    return Step(node, series, number(take, "axis", 0) % known.type.rank, place)


def _number(program: Program, value: ir.Value) -> int | None:
    """A constant that is one integer, and no row of one."""
    name = value.name or ""
    if name not in program.constants or name not in program.values or program.values[name].type.rank:
        return None
    try:
        return int(program.data(name))
    except InvalidModel:
        return None


def pays(program: Program, group: list[Step]) -> bool:
    """Whether most steps of a series are multiplied, which are small."""
    series, axis = program.values[group[0].series.name or ""], group[0].axis
    length, rank = series.shape[axis], series.type.rank
    if axis == rank - 1 or not isinstance(length, int):
        return False
    taken = {step.at % length for step in group if -length <= step.at < length}
    rows = [d for i, d in enumerate(series.shape[:-1]) if i != axis]
    return len(taken) >= LEAST_STEPS and 2 * len(taken) > length and are_few(rows)


def _beside(program: Program, node: ir.Node) -> list[Step]:
    """The steps of the series of which a node multiplies one, in all nodes that do so by the same matrices."""
    own = step_of(program, node, node.inputs[0])
    if own is None:  # what another one changed
        return []
    users = [user for take, _ in own.series.uses() for user, _ in take.outputs[0].uses() if user.graph is node.graph]
    alike = [user for user in dict.fromkeys(users) if user.inputs and layer(user) == layer(node)]
    found = [step for user in alike if (step := step_of(program, user, user.inputs[0])) is not None]
    return [step for step in found if (step.series, step.axis) == (own.series, own.axis)]


def _multiply(program: Program, draft: Draft, node: ir.Node) -> bool:
    """Multiply the series of which a node multiplies a step, and take the steps of that."""
    group = _beside(program, node)
    if len(group) < LEAST_STEPS:
        return False
    made, series, axis = draft.nodes("series"), group[0].series, group[0].axis
    whole = multiplied(made, node, series)
    draft.model.graph.insert_before(node, made.nodes)
    for step in group:
        take = step.node.inputs[0].producer() if step.node.inputs[0] is not None else None
        at = None if take is None else take.inputs[1]
        assert at is not None
        taken = draft.nodes("step")
        result = taken.node("Gather", [whole, at], [ir.AttrInt64("axis", axis)])
        draft.replace(step.node, taken, [result])
    return True
