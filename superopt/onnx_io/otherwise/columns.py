"""Places of one value along an axis, each of which is computed with by itself: columns of tables, parts of series."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import onnx_ir as ir

from superopt.dim import Dim
from superopt.onnx_io.new_nodes import NewNodes
from superopt.onnx_io.program import Program
from superopt.onnx_io.replacing import Draft
from superopt.onnx_io.turns.rows import Row
from superopt.operators.layout import Reshape
from superopt.operators.picks import Slice, Take
from superopt.relations import are_equal
from superopt.term import Term


class Place(NamedTuple):
    """One place of a value along an axis; that axis may stay, of one place."""

    of: str
    axis: int
    number: int


class Columns:
    """Which places the values of a program are."""

    def __init__(self, program: Program) -> None:
        self._program = program

    @cached_property
    def _made(self) -> dict[str, Term]:
        return self._program.made

    def of_values(self, row: Sequence[ir.Value]) -> list[Place] | None:
        """Places of one value along one axis; None of others."""
        places = [place for v in row if (place := self._place(v.name or "")) is not None]
        return places if len(places) == len(row) and len({p[:2] for p in places}) == 1 and self._alike(row) else None

    def beside_each_other(self, made: NewNodes, draft: Draft, row: Sequence[ir.Value]) -> Row:
        """Such places along an axis in front."""
        places, shape = self.of_values(row), self._program.values[row[0].name or ""].shape
        assert places is not None
        of, axis, _ = places[0]
        x = _source(row[0], of)
        known, numbers = self._program.values[of].shape, [p.number for p in places]
        if not are_equal(known[axis], len(numbers)) or numbers != list(range(len(numbers))):
            x = made.node("Gather", [x, made.integers(numbers)], [ir.AttrInt64("axis", axis)])
        order = [axis, *(a for a in range(len(known)) if a != axis)]
        moved = made.node("Transpose", [x], [ir.AttrInt64s("perm", order)]) if axis else x
        return Row(made.node("Reshape", [moved, made.integers([len(row), *_numbers(shape)])]), shape, len(row))

    def _alike(self, row: Sequence[ir.Value]) -> bool:
        """Whether all have the same shape, of sizes that are numbers."""
        shapes = {self._program.values[v.name or ""].shape for v in row}
        return len(shapes) == 1 and all(isinstance(d, int) for shape in shapes for d in shape)

    def _place(self, name: str) -> Place | None:
        term = self._made.get(name)
        if term is not None and isinstance(term.operator, Reshape):  # which leaves the axis out, or gives others of one
            inner = term.inputs[0]
            sizes = [[d for d in t.shape if not are_equal(d, 1)] for t in (inner, term)]
            term = inner if sizes[0] == sizes[1] else None
        op = None if term is None else term.operator
        if term is None or not term.inputs or not term.inputs[0].is_variable or term.inputs[0].constant:
            return None
        of = term.inputs[0].label
        if isinstance(op, Take) and len(op.indices) == 1:
            return Place(of, op.axis, op.indices[0])
        if isinstance(op, Slice) and isinstance(op.start, int) and are_equal(op.stop, op.start + 1):
            return Place(of, op.axis, op.start)
        return None


def _source(value: ir.Value, name: str) -> ir.Value:
    """The value of a name that another one is a place of: what its node reads first, or that of what this reads."""
    while value.name != name:
        node = value.producer()
        assert node is not None
        assert node.inputs[0] is not None
        value = node.inputs[0]
    return value


def _numbers(shape: Sequence[Dim]) -> list[int]:
    return [d for d in shape if isinstance(d, int)]
