"""Models that join places of one value, one after the other: that is the value, with its axes in another order.

What a script makes of each step of a series is appended to a list, and stacked in the end. Where all steps are computed
at once, they are taken apart to be joined again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import NamedTuple

import onnx_ir as ir

from superopt.onnx_io.new_nodes import NewNodes
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import data_of
from superopt.onnx_io.replacing import Draft, Put, of_nodes
from superopt.onnx_io.said import concat_axis, is_a, number
from superopt.relations import are_equal, is_one

LEAST = 4
"""So many places one after the other are worth it."""


class _Taken(NamedTuple):
    """A place of a value along an axis, which it has no more, or has elsewhere, of one."""

    of: ir.Value
    axis: int
    place: int
    spread: bool


class _Run(NamedTuple):
    """Inputs of a join, from the first to before the last, that are places of one value."""

    first: int
    last: int
    taken: list[_Taken]


def restacked(program: Program) -> dict[int, Put]:
    """How to join fewer values, by the places of what joins places of one."""
    found = of_nodes(program, lambda node: any(True for _ in _runs(program, node)))
    return dict.fromkeys(found, partial(_put, program))


def _runs(program: Program, join: ir.Node) -> Iterator[_Run]:
    """Inputs of a join that are places of one value, and can be one input."""
    if not is_a(join, "Concat") or len(join.inputs) < LEAST:
        return
    known = program.term(join.outputs[0])
    if known is None:
        return
    axis, first = concat_axis(join) % known.type.rank, 0
    taken = [_taken(program, value, axis) for value in join.inputs]
    for of, several in groupby(taken, lambda one: None if one is None else (one.of, one.axis, one.spread)):
        every = list(several)
        last, found = first + len(every), [one for one in every if one is not None]
        if of is not None and len(found) >= LEAST and _is_told(program, found[0], axis):
            yield _Run(first, last, found)
        first = last


def _is_told(program: Program, one: _Taken, axis: int) -> bool:
    """Whether a Reshape can tell what places are joined to, where one is needed."""
    shape = program.values[one.of.name or ""].shape
    rest = [d for a, d in enumerate(shape) if a != one.axis]
    return one.spread or all(isinstance(d, int) for a, d in enumerate(rest) if a != axis)


def _taken(program: Program, value: ir.Value | None, axis: int) -> _Taken | None:
    """Which place a value is that is joined along an axis."""
    node = None if value is None else value.producer()
    if value is None or node is None:
        return None
    if is_a(node, "Unsqueeze", "Reshape") and (inner := node.inputs[0]) is not None:
        known = [program.term(v) for v in (value, inner)]
        if known[0] is None or known[1] is None:
            return None
        shape, less = known[0].shape, known[1].shape
        is_spread = len(shape) == len(less) + 1 and is_one(shape[axis])
        one = _taken(program, inner, axis) if is_spread else None
        is_same = one is not None and not one.spread and all(map(are_equal, shape[:axis] + shape[axis + 1 :], less))
        return one._replace(spread=True) if one is not None and is_same else None
    if not is_a(node, "Gather") or (of := node.inputs[0]) is None or (of.name or "") not in program.values:
        return None
    data = data_of(program, node.inputs[1])
    if data is None or data.ndim or program.is_constant(of):
        return None
    shape = program.values[of.name or ""].shape
    at, place = number(node, "axis", 0) % len(shape), int(data)
    size = shape[at]
    return _Taken(of, at, place % size if isinstance(size, int) else place, False)


def _put(program: Program, draft: Draft, join: ir.Node) -> bool:
    """Join values once that all are places of."""
    made, read = draft.nodes("restacked"), list(join.inputs)
    axis = concat_axis(join) % program.values[join.outputs[0].name or ""].type.rank
    runs = list(_runs(program, join))
    for run in reversed(runs):
        read[run.first : run.last] = [_whole(program, made, run.taken, axis)]
    if not runs:
        return False
    values = [value for value in read if value is not None]
    result = made.joined(values, axis)
    return draft.replace(join, made, [result])


def _whole(program: Program, made: NewNodes, taken: Sequence[_Taken], axis: int) -> ir.Value:
    """Places of one value along its axis, joined along another."""
    one, places = taken[0], [each.place for each in taken]
    value, shape = one.of, program.values[one.of.name or ""].shape
    size, rank = shape[one.axis], len(shape)
    if places != list(range(size if isinstance(size, int) else 0)):
        value = made.node("Gather", [value, made.integers(places)], [ir.AttrInt64("axis", one.axis)])
    order = [a for a in range(rank) if a != one.axis]
    order.insert(axis, one.axis)
    if order != list(range(rank)):
        value = made.transposed(value, order)
    if one.spread:
        return value
    sizes = [d if isinstance(d, int) else -1 for a, d in enumerate(shape) if a != one.axis]
    sizes[axis] = -1
    return made.reshaped(value, sizes)
