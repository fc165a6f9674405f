"""What a turn of a loop computes of its own row, computed of all rows at once: along one more axis in front.

So JAX's `vmap` does it (Bradbury et al. 2018), for what computes single elements, and for reductions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import onnx_ir as ir
from onnx_ir.convenience import get_const_tensor

from superopt.dim import Dim, Shape, are_equal, is_one
from superopt.onnx_io.naming import rename
from superopt.onnx_io.program import Program
from superopt.onnx_io.skeleton import ONNX_DOMAIN, opset_of
from superopt.operators import CATALOGUE

ELEMENTWISE = frozenset(cls.onnx for cls in CATALOGUE.values() if cls.pointwise and not cls.domain) - {"PRelu"}
"""What computes each element of its own, of inputs that broadcast to each other. Slopes do only to what they are of."""

REDUCES = frozenset({"ReduceL1", "ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum", "ReduceSumSquare"})


class Row(NamedTuple):
    """What a value of a turn is outside, the shape that it has in a turn, and how many turns stand in front of it; None
    where it is the same in all.
    """

    value: ir.Value
    shape: Shape
    turns: Dim | None


class AllTurns:
    """The values of a turn, in all turns, and the `nodes` that compute them; names that are `taken` are not given.
    `more` are operators that are computed too.
    """

    def __init__(
        self, program: Program, model: ir.Model, taken: set[str], more: Mapping[str, Way] | None = None
    ) -> None:
        self._program, self._model, self._taken, self._more = program, model, taken, more or {}
        self.rows: dict[ir.Value, Row] = {}
        self.nodes: list[ir.Node] = []

    def row(self, value: ir.Value | None) -> Row | None:
        """What a value of a turn is outside; None where its shape is not known."""
        if value is None or value in self.rows:
            return None if value is None else self.rows[value]
        if (held := held_by(value)) is not None:
            return Row(value, tuple(held.shape.numpy()), None)
        known = self._program.values.get(value.name or "")
        return None if known is None else Row(value, known.shape, None)

    def take(self, node: ir.Node) -> bool:
        """Compute a node in all turns; False where it is none that can be."""
        if node.op_type == "Constant" and (held := get_const_tensor(node.outputs[0])) is not None:
            value = self.new("Constant", [], list(node.attributes.values()))
            self.rows[node.outputs[0]] = Row(value, tuple(held.shape.numpy()), None)
            return True
        rows = [row for v in node.inputs if (row := self.row(v)) is not None]
        if node.domain not in ONNX_DOMAIN or len(node.outputs) != 1 or not rows or len(rows) < len(node.inputs):
            return False
        made: Row | None = None
        if node.op_type == "Identity":
            made = rows[0]
        elif node.op_type in ELEMENTWISE:
            made = self._elementwise(node, rows)
        elif node.op_type in REDUCES:
            made = self._reduced(node, rows)
        elif node.op_type in self._more and any(r.turns is not None for r in rows):
            made = self._more[node.op_type](self, node, rows)
        if made is not None:
            self.rows[node.outputs[0]] = made
        return made is not None

    def _elementwise(self, node: ir.Node, rows: Sequence[Row]) -> Row | None:
        """What broadcasts does so behind the axis of turns."""
        rank = max(len(r.shape) for r in rows)
        shape = [broadcast([r.shape[-a] for r in rows if len(r.shape) >= a]) for a in range(rank, 0, -1)]
        if None in shape:
            return None
        turns = next((r.turns for r in rows if r.turns is not None), None)
        inputs = [r.value if r.turns is None else self.aligned(r, rank) for r in rows]
        new = self.new(node.op_type, inputs, list(node.attributes.values()))
        return Row(new, tuple(d for d in shape if d is not None), turns)

    def aligned(self, row: Row, rank: int) -> ir.Value:
        """A value of all turns whose turn has this rank."""
        more = rank - len(row.shape)
        return self.over(row.value, "Unsqueeze", range(1, more + 1), 13) if more else row.value

    def _reduced(self, node: ir.Node, rows: Sequence[Row]) -> Row | None:
        """What is reduced in each turn, along axes that are known."""
        row, rank, told = rows[0], len(rows[0].shape), node.attributes.get("axes")
        held = held_by(node.inputs[1]) if len(rows) > 1 else None
        if row.turns is None or (told is None and held is None):
            return None
        listed = told.as_ints() if told is not None else held.numpy().tolist() if held is not None else ()
        if not listed or any(not -rank <= a < rank for a in listed):
            return None
        axes, kept = sorted(a % rank for a in listed), number(node, "keepdims", 1)
        shape = [1 if a in axes else d for a, d in enumerate(row.shape) if kept or a not in axes]
        since = 13 if node.op_type == "ReduceSum" else 18
        new = self.over(row.value, node.op_type, [a + 1 for a in axes], since, [ir.AttrInt64("keepdims", kept)])
        return Row(new, tuple(shape), row.turns)

    def over(
        self, x: ir.Value, op_type: str, axes: Sequence[int], since: int, more: Sequence[ir.Attr] = ()
    ) -> ir.Value:
        """An operator along axes, which are an input since some opset."""
        if opset_of(self._model) < since:
            return self.new(op_type, [x], [ir.AttrInt64s("axes", list(axes)), *more])
        held = ir.AttrTensor("value", ir.tensor(np.array(axes, np.int64)))
        return self.new(op_type, [x, self.new("Constant", [], [held])], more)

    def new(self, op_type: str, inputs: Sequence[ir.Value], attributes: Sequence[ir.Attr]) -> ir.Value:
        node = ir.Node("", op_type, inputs, attributes)
        self.nodes.append(node)
        made = node.outputs[0]
        made.name = "turns"
        rename(made, self._taken)
        return made


def held_by(value: ir.Value | None) -> ir.TensorProtocol | None:
    """The data of a constant; None of an input, whose data is what is taken where none is given."""
    return None if value is None or value.is_graph_input() else get_const_tensor(value)


def broadcast(dims: Sequence[Dim]) -> Dim | None:
    """The size along an axis of what broadcasts; None where these differ."""
    several = [d for d in dims if not is_one(d)]
    return None if any(not are_equal(d, several[0]) for d in several) else several[0] if several else 1


def number(node: ir.Node, name: str, default: int) -> int:
    """What an attribute says."""
    return node.attributes[name].as_int() if name in node.attributes else default


Way: TypeAlias = Callable[[AllTurns, ir.Node, Sequence[Row]], Row | None]
"""Computes a node in all turns, of rows one of which at least is not the same in all; None where that is not known."""
