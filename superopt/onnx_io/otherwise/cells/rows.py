"""How values of a program are made of rows: products, sums, parts and joins, however a model spells them."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress

import numpy as np
import onnx_ir as ir

from superopt.arithmetic.carrier import Array
from superopt.dim import Dim, product
from superopt.onnx_io.operator_kinds import VIEWS
from superopt.onnx_io.otherwise.cells.affine import Affine, NotRows, matrix_of, row
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import data_of, integers_of
from superopt.onnx_io.said import concat_axis, input_of, is_a, is_scaled, number
from superopt.relations import are_equal

MOST_LAYERS = 4
"""So many layers stand between a state and what the next step reads of it, at most."""

WIDEST, DEEPEST = 2**13, 24
"""Rows are not wider, and not made by more nodes one behind the other."""


class Rows:
    """How values of a program are made of rows: each of a last axis, of a tensor with as many of them. What some are
    made of, which are `given`, is not looked at, nor are matrices that fewer nodes than `least_used` read.
    """

    def __init__(self, program: Program, given: Collection[ir.Value], least_used: int) -> None:
        self._program, self._least_used = program, least_used
        self._known: dict[ir.Value, Affine] = {value: self._itself(value) for value in given}
        self._depth = 0

    def of(self, value: ir.Value | None) -> Affine:
        """How a value is made; of itself where that is not known. Raises `NotRows`."""
        if value is None:
            raise NotRows
        if value not in self._known:
            self._depth += 1
            with suppress(NotRows):
                self._known[value] = (self._read(value) if self._depth < DEEPEST else None) or self._itself(value)
            self._depth -= 1
        if value not in self._known:
            self._known[value] = self._itself(value)
        return self._known[value]

    def over(self, value: ir.Value, state: ir.Value, deepest: int = MOST_LAYERS) -> Affine | None:
        """How a value is made of a state alone, by several layers perhaps. Raises `NotRows`."""
        if value is state or not deepest:
            return self._itself(state) if value is state else None
        rows = self.of(value)
        made = Affine({}, rows.more)
        for v, m in rows.parts.items():
            inner = self.over(v, state, deepest - 1) if v is not value else None
            if inner is None:
                return None
            made = made.plus(inner.times(m))
        return made

    def before(self, value: ir.Value) -> Affine:
        """How that is made of which a function of each number is a value, or some columns of it. Raises `NotRows`."""
        node = value.producer()
        if node is None or not node.inputs or node.inputs[0] is None:
            raise NotRows
        if not is_a(node, "Split", "Slice"):
            return self.of(node.inputs[0])
        begin = self._begin(node, value)
        if begin is None:
            raise NotRows
        return self.before(node.inputs[0]).part(begin, self.width(value))

    def width(self, value: ir.Value) -> int:
        """How wide rows are. Raises `NotRows`."""
        return self._shape(value)[1]

    def count(self, value: ir.Value) -> Dim:
        """How many rows a tensor has. Raises `NotRows`."""
        return self._shape(value)[0]

    def constant(self, value: ir.Value | None) -> Array | None:
        """The value of a constant of floating-point numbers."""
        data = data_of(self._program, value)
        return data if data is not None and data.dtype.kind == "f" else None

    def number(self, value: ir.Value) -> float | None:
        """The number that all elements of a constant are."""
        data = self.constant(value)
        return None if data is None or not data.size or (data != data.flat[0]).any() else float(data.flat[0])

    def _shape(self, value: ir.Value) -> tuple[Dim, int]:
        known = self._program.term(value)
        width = known.shape[-1] if known is not None and known.type.rank else None
        if known is None or not isinstance(width, int) or width > WIDEST:
            raise NotRows
        return product(known.shape[:-1]), width

    def _itself(self, value: ir.Value) -> Affine:
        return Affine({value: None}, np.zeros(self.width(value), np.float32), picked=True)

    def _read(self, value: ir.Value) -> Affine | None:
        node = value.producer()
        if node is None or not is_a(node, node.op_type):
            return None
        if node.op_type in ("MatMul", "Gemm"):
            return self._product(node)
        if node.op_type in ("Add", "Sub"):
            return self._sum(node)
        if node.op_type in ("Split", "Slice"):
            return self._part(node, value)
        if node.op_type == "Concat":
            return self._joined(node)
        if node.op_type in (*VIEWS, "Identity"):
            inner = node.inputs[0]
            same = inner is not None and (inner.name or "") in self._program.values and self._alike(inner, value)
            return self.of(inner) if same else None
        return None

    def _alike(self, one: ir.Value, other: ir.Value) -> bool:
        """Whether two tensors have as many rows, as wide."""
        (rows, width), (others, as_wide) = self._shape(one), self._shape(other)
        return width == as_wide and are_equal(rows, others)

    def _product(self, node: ir.Node) -> Affine | None:
        given = node.inputs[1]
        matrix = self.constant(given) if given is not None and len(given.uses()) >= self._least_used else None
        if matrix is None or matrix.ndim != 2 or number(node, "transA", 0) or is_scaled(node):
            return None
        if number(node, "transB", 0):
            matrix = matrix.T
        x = node.inputs[0]
        if x is None:
            raise NotRows
        rows = self.of(x)
        rows = rows if rows.picked else self._itself(x)  # to multiply matrices beforehand may make larger ones
        made, added = rows.times(matrix), input_of(node, 2)
        if added is None:
            return made
        more = self.constant(added)
        return self._added(made, self.of(added) if more is None else row(more, made.width), node.outputs[0])

    def _sum(self, node: ir.Node) -> Affine | None:
        one, other = (self._term(node, i) for i in (0, 1))
        return self._added(one, other.negated() if node.op_type == "Sub" else other, node.outputs[0])

    def _term(self, node: ir.Node, place: int) -> Affine:
        data = self.constant(node.inputs[place])
        return self.of(node.inputs[place]) if data is None else row(data, self.width(node.outputs[0]))

    def _added(self, one: Affine, other: Affine, value: ir.Value) -> Affine | None:
        """The sum of two, if none is repeated for it."""
        rows, width = self._shape(value)
        if {one.width, other.width} != {width}:
            return None
        if not all(are_equal(self.count(v), rows) for v in (*one.parts, *other.parts)):
            return None
        return one.plus(other)

    def _part(self, node: ir.Node, value: ir.Value) -> Affine | None:
        """Some columns of rows."""
        inner, begin = node.inputs[0], self._begin(node, value)
        return None if inner is None or begin is None else self.of(inner).part(begin, self.width(value))

    def _begin(self, node: ir.Node, value: ir.Value) -> int | None:
        """The first of the columns that a part has; None of one that is along another axis, or leaves some out."""
        known = self._program.term(node.inputs[0])
        if node.inputs[0] is None or known is None:
            return None
        whole, rank = self.width(node.inputs[0]), known.type.rank
        if node.op_type == "Split":
            if number(node, "axis", 0) % rank != rank - 1:
                return None
            return sum(self.width(v) for v in node.outputs[: value.index()])
        said = (("starts", 1), ("axes", 3), ("steps", 4))
        starts, axes, strides = (integers_of(self._program, node, *where) for where in said)
        if starts is None or axes is None or strides is None:
            raise NotRows
        if len(starts) != 1 or [a % rank for a in axes or [0]] != [rank - 1] or strides not in ([], [1]):
            return None
        begin = starts[0] if starts[0] >= 0 else whole + starts[0]
        return begin if 0 <= begin < whole else None

    def _joined(self, node: ir.Node) -> Affine | None:
        """Rows side by side."""
        known = self._program.term(node.outputs[0])
        if known is None or concat_axis(node) % known.type.rank != known.type.rank - 1:
            return None
        every = [self._term_of_join(v) for v in node.inputs]
        ends = np.cumsum([0, *(one.width for one in every)]).tolist()
        parts: dict[ir.Value, Array] = {}
        for one, begin in zip(every, ends, strict=False):
            for v, m in one.parts.items():
                whole = parts.setdefault(v, np.zeros((self.width(v), ends[-1]), np.float32))
                whole[:, begin : begin + one.width] += matrix_of(m, one.width)
        return Affine(parts, np.concatenate([one.more for one in every]), all(one.picked for one in every))

    def _term_of_join(self, value: ir.Value | None) -> Affine:
        if value is None:
            raise NotRows
        data = self.constant(value)
        return self.of(value) if data is None else row(data, self.width(value))
