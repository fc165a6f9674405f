"""What takes places along one axis of a value, and which these are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import onnx_ir as ir

from superopt.onnx_io.otherwise.unread.evenly import Places, evenly, whole
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import data_of, shape_of
from superopt.onnx_io.said import is_a, number
from superopt.operators.picks import Every, Slice, Take
from superopt.term import Operator, Term

CUTS = ("Slice", "Gather")
"""What takes places along one axis, and what stands beside each other along others as it is."""


class Known(NamedTuple):
    """A program, and the terms that its steps compute values by, which it would look for each time."""

    program: Program
    made: Mapping[str, Term]


class Need(NamedTuple):
    """The places of a value along an axis that something reads."""

    axis: int
    places: Places


def size_of(program: Program, value: ir.Value | None, axis: int) -> int | None:
    """How many places a value has along an axis, where that is known."""
    shape = shape_of(program, value)
    size = None if shape is None else shape[axis]
    return size if isinstance(size, int) else None


class Cut(NamedTuple):
    """Places that are taken along an axis, which is gone where there is but one."""

    axis: int
    places: Places
    gone: bool = False


def cut_of(known: Known, node: ir.Node) -> Cut | None:
    """What a Slice takes along one axis, or a Gather of places that are known; None of others."""
    program = known.program
    if is_a(node, "Gather"):
        data, shape = data_of(program, node.inputs[1]), shape_of(program, node.inputs[0])
        if data is None or shape is None or data.ndim > 1:
            return None
        axis = number(node, "axis", 0) % len(shape)
        size = size_of(program, node.inputs[0], axis)
        numbers = [int(i) for i in data.reshape(-1)]
        if size is None:  # the first place is there, or nothing could be taken
            return Cut(axis, evenly(0, 0, 1), not data.ndim) if numbers == [0] else None
        if not all(-size <= i < size for i in numbers):
            return None
        places = _even([i % size for i in numbers])
        return None if places is None else Cut(axis, places, not data.ndim)
    term = known.made.get(node.outputs[0].name or "")
    if term is None or not isinstance(term.operator, Slice | Every | Take):
        return None
    axis, kept = term.operator.axis, term.shape[term.operator.axis]
    cuts, below = _cuts(term)
    places = whole(kept) if isinstance(kept, int) and below is program.term(node.inputs[0]) else None
    for op in cuts:
        places = None if places is None else _before(op, axis, places)
    return None if places is None else Cut(axis, places)


def _cuts(term: Term) -> tuple[list[Operator], Term]:
    """The operators that take places, the last one first, and what they are taken of."""
    found = list[Operator]()
    while isinstance(term.operator, Slice | Every | Take):
        found.append(term.operator)
        (term,) = term.inputs
    return found, term


def _before(op: Operator, axis: int, places: Places) -> Places | None:
    """The places of what is read that these are of what is taken; None where that is along another axis."""
    if isinstance(op, Slice) and op.axis == axis and isinstance(op.start, int):
        return places._replace(first=places.first + op.start)
    if isinstance(op, Every) and op.axis == axis and isinstance(op.step, int):
        return evenly(places.first * op.step, places.last * op.step, places.step * op.step)
    if isinstance(op, Take) and op.axis == axis:
        return _even([op.indices[p] for p in range(places.first, places.last + 1, places.step)])
    return None


def _even(numbers: Sequence[int]) -> Places | None:
    """Places of these numbers; None where they are not evenly apart, in order."""
    if not numbers:
        return None
    step = numbers[1] - numbers[0] if len(numbers) > 1 else 1
    found = evenly(numbers[0], numbers[-1], step) if step > 0 else None
    same = found is not None and list(range(found.first, found.last + 1, found.step)) == list(numbers)
    return found if same else None
