"""Values that are each computed with by themselves, one behind the other along an axis in front: whole ones, or places
of some along an axis, as are columns of tables, parts of series, and one feature's row among those of all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import NamedTuple

import onnx_ir as ir

from superopt.dim import Shape
from superopt.onnx_io.at_once.rows import Row
from superopt.onnx_io.new_nodes import NewNodes
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import told
from superopt.operators.layout import Reshape
from superopt.operators.picks import Slice, Take
from superopt.relations import are_equal
from superopt.term import Term, Type

FLOATS = ("float32", "float64")
"""The types that runtimes multiply."""

TIMES = 2
"""So often each of few values is read in the mean."""


class Place(NamedTuple):
    """One place of a value along an axis, which may stay, of one place; a value itself has no axis."""

    of: str
    axis: int | None
    number: int


class Placed(NamedTuple):
    """Places of values of one type: of which of these, each of them once, and the number there, for each place."""

    of: dict[str, ir.Value]
    type: Type
    axis: int | None
    places: list[Place]

    @property
    def are_few(self) -> bool:
        """Whether these are few floating-point values, each of them read several times or cut from what is whole."""
        return self.type.dtype in FLOATS and TIMES * len(self.of) <= len(self.places)


class Columns:
    """Which places the values of a program are."""

    def __init__(self, program: Program) -> None:
        self._program = program

    @cached_property
    def _made(self) -> dict[str, Term]:
        return self._program.made

    def of_values(self, row: Sequence[ir.Value]) -> Placed | None:
        """Places of values of one type along one axis, or these themselves; None where they are of several types."""
        type_, places = self._type(row), [self._place(v.name or "") for v in row]
        if type_ is None or not type_.rank:
            return None
        return self._placed(row, places) or self._placed(row, [Place(v.name or "", None, 0) for v in row])

    def _placed(self, row: Sequence[ir.Value], places: list[Place]) -> Placed | None:
        """Places of values of one type along one axis, of which it is known how many there are; None of others."""
        of = {p.of: _source(v, p.of) for v, p in zip(row, places, strict=True)}
        type_, axes = self._type(list(of.values())), {p.axis for p in places}
        if type_ is None or len(axes) > 1:
            return None
        axis = axes.pop()
        return Placed(of, type_, axis, places) if axis is None or isinstance(type_.shape[axis], int) else None

    def beside_each_other(self, made: NewNodes, rows: Sequence[Sequence[ir.Value]]) -> list[Row]:
        """Such values of each row along an axis in front, their sizes being numbers but for one of each at most. What
        several rows have places of is put there once.
        """
        placed = [found for row in rows if (found := self.of_values(row)) is not None]
        wholes, result = Wholes(placed, partial(_in_front, made)), list[Row]()
        for row, found in zip(rows, placed, strict=True):
            front, numbers = wholes.of(found)
            taken = front if numbers is None else made.node("Gather", [front, made.integers(numbers)])
            shape = self._program.values[row[0].name or ""].shape
            result.append(Row(_viewed(made, taken, (len(row), *shape)), shape, len(row)))
        return result

    def _type(self, row: Sequence[ir.Value]) -> Type | None:
        """The type that all have; None where they have several, or it is not known."""
        known = [self._program.term(v) for v in row]
        types = {None if term is None else term.type for term in known}
        return types.pop() if len(types) == 1 else None

    def _place(self, name: str) -> Place:
        """What a value is a place of, if it is one of another value."""
        term = self._made.get(name)
        if term is not None and isinstance(term.operator, Reshape):  # which leaves the axis out, or gives others of one
            inner = term.inputs[0]
            sizes = [[d for d in t.shape if not are_equal(d, 1)] for t in (inner, term)]
            term = inner if sizes[0] == sizes[1] else None
        op = None if term is None else term.operator
        if term is None or not term.inputs or not term.inputs[0].is_variable or term.inputs[0].constant:
            return Place(name, None, 0)
        of = term.inputs[0].label
        if isinstance(op, Take) and len(op.indices) == 1:
            return Place(of, op.axis, op.indices[0])
        if isinstance(op, Slice) and isinstance(op.start, int) and are_equal(op.stop, op.start + 1):
            return Place(of, op.axis, op.start)
        return Place(name, None, 0)


class Wholes:
    """What places of several rows are of, values of each type put together once: `join` does that."""

    def __init__(self, placed: Sequence[Placed], join: Callable[[Sequence[ir.Value], Placed], ir.Value]) -> None:
        self._of = dict[tuple[Type, int | None], dict[str, ir.Value]]()
        for found in placed:
            self._of.setdefault((found.type, found.axis), {}).update(found.of)
        like = {(found.type, found.axis): found for found in placed}
        self._joined = {key: join(list(self._of[key].values()), found) for key, found in like.items()}

    def of(self, placed: Placed) -> tuple[ir.Value, list[int] | None]:
        """What was put together, and the places in it; None where these are all, in order."""
        key, size = (placed.type, placed.axis), 1 if placed.axis is None else placed.type.shape[placed.axis]
        assert isinstance(size, int)
        first = {name: i * size for i, name in enumerate(self._of[key])}
        numbers = [first[p.of] + p.number for p in placed.places]
        return self._joined[key], None if numbers == list(range(len(first) * size)) else numbers


def _in_front(made: NewNodes, values: Sequence[ir.Value], like: Placed) -> ir.Value:
    """The places of values of one type, one behind the other along the first axis."""
    axis = like.axis or 0
    joined = made.joined(values, axis)
    if like.axis is None:
        return _viewed(made, joined, (len(values), *like.type.shape))
    order = [axis, *(a for a in range(like.type.rank) if a != axis)]
    return made.transposed(joined, order) if axis else joined


def _source(value: ir.Value, name: str) -> ir.Value:
    """The value of a name that another one is a place of: what its node reads first, or that of what this reads."""
    while value.name != name:
        node = value.producer()
        assert node is not None
        assert node.inputs[0] is not None
        value = node.inputs[0]
    return value


def _viewed(made: NewNodes, value: ir.Value, shape: Shape) -> ir.Value:
    """A value in another shape, one size of which may be no number."""
    sizes = told(shape)
    assert sizes is not None
    return made.reshaped(value, sizes)
