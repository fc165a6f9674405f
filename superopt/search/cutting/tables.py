"""Tables that say the same of both halves of a row, as a piece sees them: as a half, joined with itself.

Exporters make such tables once, outside the layers that turn queries and keys by them, so no piece of a layer shows it.
In pieces with rotations they stand as what they are equal to; where a piece is put back, as the values that they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from superopt.demands import assuming
from superopt.errors import SuperoptError
from superopt.onnx_io.program import Program
from superopt.operators.definitions.rotations import first_half, rotation
from superopt.operators.layout import Concat
from superopt.operators.picks import Slice
from superopt.operators.pointwise import Add
from superopt.relations import divides
from superopt.term import Term, subterms, variables

FAR = 20
"""How many steps back a table is followed to where halves are joined."""


class Tables:
    """Tells which values of a program are a half twice, along their last axis; remembers what it found."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._made: Mapping[str, Term] | None = None
        self._known: dict[Term, bool] = {}
        self._steps = 0

    def shown(self, outputs: Sequence[Term]) -> dict[Term, Term]:
        """The tables of rotations below some terms that are a half twice, and what each is equal to."""
        leaves = dict.fromkeys(v for table in _tables(outputs) for v in variables(table))
        halves = ((v, self._half(v, v.type.rank - 1)) for v in leaves)
        return {v: Concat(v.type.rank - 1)(half, half) for v, half in halves if half is not None}

    def _half(self, v: Term, axis: int) -> Term | None:
        if axis < 0 or axis != v.type.rank - 1 or divides(2, v.shape[axis]) is not True:
            return None
        if v not in self._known:
            self._known[v] = self._is_constant_twice(v) if v.constant else self._is_made_twice(v)
        return Slice(axis, 0, v.shape[axis] // 2)(v) if self._known[v] else None

    def _is_constant_twice(self, v: Term) -> bool:
        try:
            first, second = np.split(self._program.data(v.label), 2, axis=-1)
        except SuperoptError:
            return False
        return bool(np.array_equal(first, second))

    def _is_made_twice(self, v: Term) -> bool:
        self._made = self._program.made if self._made is None else self._made
        term = self._made.get(v.label)
        if term is None or self._steps >= FAR:
            return False
        self._steps += 1
        with assuming():  # that its sizes are not too small is known of the whole
            found = first_half(term, v.type.rank - 1, self._half) is not None
        self._steps -= 1
        return found


def _tables(outputs: Sequence[Term]) -> Iterator[Term]:
    """By what rotations below some terms turn."""
    for term in subterms(*outputs):
        found = rotation(*term.inputs) if isinstance(term.operator, Add) else None
        yield from found[1:] if found is not None else ()
