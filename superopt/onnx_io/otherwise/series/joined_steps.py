"""Models that multiply a step of a series apart from what it is joined with, so that all `steps` can be at once.

`W·[x[t], h]` is what a recurrent cell of many a script computes (`torch.cat((x[t], h), 1)`): `V·x[t] + U·h`.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import onnx_ir as ir

from superopt.onnx_io.otherwise.linear import LEAST_STEPS, is_linear, layer
from superopt.onnx_io.otherwise.series.steps import Step, pays, step_of
from superopt.onnx_io.program import Program
from superopt.onnx_io.replacing import Draft, Put
from superopt.onnx_io.said import concat_axis, is_a, number
from superopt.onnx_io.skeleton import opset_of


class _Joined(NamedTuple):
    """A step that a node multiplies, the place of it among what it is joined with, and how wide each of these is."""

    step: Step
    place: int
    widths: tuple[int, ...]


def joined_steps(program: Program) -> dict[int, Put]:
    """How to multiply steps apart, by the places of the first products of what they are joined with."""
    if opset_of(program.model) < 13:  # a slice had its bounds as attributes, and a split its parts
        return {}
    places, found = {node: i for i, node in enumerate(program.model.graph)}, dict[int, Put]()
    for group in _groups(program):
        if pays(program, [joined.step for joined in group]):
            found[min(places[joined.step.node] for joined in group)] = partial(_part, program)
    return found


def _groups(program: Program) -> list[list[_Joined]]:
    """Products of the same matrices by steps of the same series, in the same place among as wide others."""
    found: dict[object, list[_Joined]] = {}
    for node in program.model.graph:
        joined = _joined(program, node)
        if joined is not None:
            found.setdefault(_alike(joined), []).append(joined)
    return list(found.values())


def _alike(joined: _Joined) -> object:
    """What all of a group have alike."""
    return joined.step.series, joined.step.axis, joined.place, joined.widths, layer(joined.step.node)


def _beside(program: Program, node: ir.Node) -> list[_Joined]:
    """The steps that are multiplied as the one that a node multiplies, that among them."""
    own = _joined(program, node)
    if own is None:  # what another one changed
        return []
    joins = [join for take, _ in own.step.series.uses() for join, _ in take.outputs[0].uses()]
    users = [user for join in joins if join.op_type == "Concat" for user, _ in join.outputs[0].uses()]
    alike = [user for user in dict.fromkeys(users) if user.graph is node.graph and layer(user) == layer(node)]
    found = [joined for user in alike if (joined := _joined(program, user)) is not None]
    return [joined for joined in found if _alike(joined) == _alike(own)]


def _joined(program: Program, node: ir.Node) -> _Joined | None:
    """The first step that a node multiplies by rows of a matrix of their own."""
    join = node.inputs[0].producer() if node.inputs[:1] and node.inputs[0] is not None else None
    if not is_a(join, "Concat") or len(join.inputs) < 2:
        return None
    terms = [program.term(v) for v in join.inputs if v is not None]
    widths = [t.shape[-1] for t in terms if t is not None and t.type.rank]
    numbers = tuple(width for width in widths if isinstance(width, int))
    known = [t.type.rank for t in terms if t is not None]
    if len(numbers) < len(join.inputs) or concat_axis(join) % known[0] != known[0] - 1:
        return None
    if not is_linear(program, node, known[0]):
        return None
    found = ((place, step_of(program, node, value)) for place, value in enumerate(join.inputs))
    return next((_Joined(step, place, numbers) for place, step in found if step is not None), None)


def _part(program: Program, draft: Draft, node: ir.Node) -> bool:
    """Multiply steps apart from what they are joined with, in all nodes that do so by the same matrix as one."""
    group = _beside(program, node)
    if len(group) < LEAST_STEPS:
        return False
    made, place, widths = draft.nodes("part"), group[0].place, group[0].widths
    matrix, *bias = node.inputs[1:]
    assert matrix is not None
    axis = number(node, "transB", 0)
    rows = made.parts(matrix, widths, axis)
    rest = made.joined([part for i, part in enumerate(rows) if i != place], axis)
    draft.model.graph.insert_before(node, made.nodes)
    for joined in group:
        join = joined.step.node.inputs[0].producer() if joined.step.node.inputs[0] is not None else None
        assert join is not None
        new, read = draft.nodes("apart"), [v for v in join.inputs if v is not None]
        beside = [v for i, v in enumerate(read) if i != place]
        x = new.joined(beside, concat_axis(join))
        said = list(node.attributes.values())
        if node.op_type == "Gemm":
            step = new.node("Gemm", [read[place], rows[place], *(b for b in bias if b is not None)], said)
            result = new.node("Gemm", [x, rest, step], said)
        else:
            step = new.node("MatMul", [read[place], rows[place]])
            result = new.node("Add", [new.node("MatMul", [x, rest]), step])
        draft.replace(joined.step.node, new, [result])
    return True
