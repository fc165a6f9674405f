"""Values of a loop's turns as they stand outside, in all turns at once, and new nodes that compute such."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import onnx_ir as ir

from superopt.dim import Dim, Shape
from superopt.onnx_io.new_nodes import NewNodes
from superopt.term import Term


class Row(NamedTuple):
    """What a value of a turn is outside, the shape that it has in a turn, and how many turns stand in front of it; None
    where it is the same in all.
    """

    value: ir.Value
    shape: Shape
    turns: Dim | None


class Nodes(NewNodes):
    """New nodes for a model of whose own values terms are known by name."""

    def __init__(self, name: str, taken: set[str], opset: int, known: Mapping[str, Term]) -> None:
        super().__init__(name, taken, opset)
        self._known = known

    def shape_of(self, value: ir.Value) -> Shape | None:
        """The shape of one of the model's own values."""
        term = self._known.get(value.name or "")
        return None if term is None else term.shape


def aligned(nodes: Nodes, row: Row, rank: int) -> ir.Value:
    """A value of all turns whose turn has this rank."""
    more = rank - len(row.shape)
    return nodes.over(row.value, "Unsqueeze", range(1, more + 1)) if more else row.value
