"""Rows of several tables, one below the other, by an index into each: what embeddings of many features are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from superopt.arithmetic.carrier import Array, Carrier
from superopt.demands import require
from superopt.dim import Shape
from superopt.operators.attributes import attr
from superopt.operators.declare import operator
from superopt.operators.declared import Declared
from superopt.operators.nodes import Emitter, NotUnderstood
from superopt.term import Type

MOST_ROWS = 2**28
"""Of all tables together: what is computed of indices stays far within 64 bits."""

_INT64 = 7
"""ONNX's number of the type of sizes."""

_WITH_MOD = 10
"""The opset that gave Mod."""


@operator("lookups")
class Lookups(Declared):
    """`y[.., j, ..] = x[s_0 + … + s_{j−1} + (i[.., j] mod s_j), ..]`: a row of each table, of s_j rows; a negative
    index counts from the end of its table.
    """

    enumerated = False
    linear = (0,)
    zero = True
    moves = True
    rows: tuple[int, ...] = attr(sample=[(1, 2)])

    def dtype(self, inputs: Sequence[Type]) -> str:
        """That of the tables."""
        return inputs[0].dtype

    def shape(self, x: Shape, i: Shape) -> Shape:  # type: ignore[override]
        """A row for each index; as many on the last axis of these as there are tables."""
        require(len(x) == 2 and len(i) > 0, f"lookups: {x} is no matrix, or {i} has no axis")
        require(min(self.rows, default=0) > 0, f"lookups: tables of {self.rows} rows")
        require(x[0] == sum(self.rows), f"lookups: {x} has not the rows of {self.rows}")
        require(i[-1] == len(self.rows), f"lookups: {i} has not an index for each of {len(self.rows)} tables")
        return (*i, x[1])

    def eval(self, ring: Carrier, x: Array, i: Array) -> Array:  # type: ignore[override]
        """What stands there."""
        return np.asarray(np.take(x, np.asarray(i, np.int64) % np.array(self.rows) + self._begins(), axis=0))

    def to_onnx(self, out: Emitter, *inputs: str) -> str:
        """A Gather by indices into all tables. What is past either end of its own is past that of all, as
        `(2 i + 1) / (2 s_j)`, rounded to zero, is not zero then: runtimes refuse it as they would have. They leave out
        a cast to the same type.
        """
        if out.opset < _WITH_MOD:
            raise NotUnderstood(f"before opset {_WITH_MOD} there is no Mod")
        x, i = inputs[0], out.node("Cast", inputs[1:], {"to": _INT64})
        begins = out.integers(tuple(map(int, self._begins())))
        within = out.node("Add", (out.node("Mod", (i, out.integers(self.rows))), begins))
        odd = out.node("Add", (out.node("Add", (i, i)), out.integers((1,))))
        past = out.node("Div", (odd, out.integers(tuple(2 * r for r in self.rows))))
        beyond = out.node("Mul", (past, out.integers((2 * sum(self.rows),))))
        return out.node("Gather", (x, out.node("Add", (within, beyond))), {"axis": 0})

    def _begins(self) -> Array:
        """The first row of each table."""
        return np.cumsum((0, *self.rows[:-1]))
