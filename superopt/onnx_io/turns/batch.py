"""The rows of a batch within a graph, and what has to wait for all of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import onnx_ir as ir

from superopt.dim import Dim, Shape
from superopt.onnx_io.at_once.unfailing import fails_for_elements
from superopt.onnx_io.order import is_read, read_values
from superopt.onnx_io.program import Program
from superopt.onnx_io.said import input_of
from superopt.onnx_io.skeleton import ONNX_DOMAIN
from superopt.relations import are_equal, is_one

_INTEGERS = {f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)}
_TURNED = frozenset({"bool", "float16", "float32", "float64", *_INTEGERS})
"""The types of elements that all operators take which put rows into turns."""

Keeps: TypeAlias = "Callable[[Batch, ir.Node], bool]"
"""Whether a node that reads rows gives rows, each of that row alone."""


@dataclass
class Batch:
    """The values of a graph whose first axis is that of a batch of some size, and of each row computed alone.
    `keeps` are the operators that may compute such.
    """

    program: Program
    graph: ir.Graph
    size: Dim
    opset: int
    keeps: Mapping[str, Keeps]
    rows: set[ir.Value] = field(default_factory=set)
    _names: set[str] = field(default_factory=set)
    _behind: set[str] = field(default_factory=set)
    """The names of what is computed of rows by nodes that are not taken: what reads it has to wait for all rows."""

    def take(self, node: ir.Node) -> bool:
        """Whether a node computes rows of rows, and which these are is known from now on. Nodes come in their order."""
        read = set(read_values(node))
        if node.op_type == "Reshape" and self.row_shape(node) is not None:
            read.discard(node.inputs[1].name if node.inputs[1] is not None else None)
        if self._behind.isdisjoint(read) and self._keeps(node):
            self.add(filter(is_read, node.outputs))
            return True
        self.leave(node, read)
        return False

    def leave(self, node: ir.Node, read: Collection[str | None]) -> None:
        """Let what a node gives be known to wait for all rows, where something that it reads is a row or does so."""
        if not (self._behind.isdisjoint(read) and self._names.isdisjoint(read)):
            self._behind.update(v.name for v in node.outputs if v.name and v.name not in self.program.constants)

    def add(self, rows: Iterable[ir.Value]) -> None:
        """Let values be known to be rows."""
        for value in rows:
            self.rows.add(value)
            self._names.add(value.name or "")

    def _keeps(self, node: ir.Node) -> bool:
        """Whether a node computes rows of rows."""
        keeps = self.keeps.get(node.op_type) if node.domain in ONNX_DOMAIN else None
        given = list(filter(is_read, node.outputs))
        if keeps is None or not given or self.rows.isdisjoint(node.inputs) or not all(map(self.begins, given)):
            return False
        return keeps(self, node) and (isinstance(self.size, int) or not self._fails_for_zeros(node))

    def _fails_for_zeros(self, node: ir.Node) -> bool:
        """Whether a row of zeros may fail, which stands for rows where there are none."""
        values = [self.program.term(v) for v in node.inputs[:1] if v is not None]
        dtype = values[0].type.dtype if values and values[0] is not None else None
        if node.op_type == "Gather":
            shape = self.shape(node.inputs[0])
            return shape is None or not (isinstance(shape[0], int) or node.inputs[0] in self.rows)
        return fails_for_elements("Div" if node.op_type == "Mod" else node.op_type, dtype)

    def shape(self, value: ir.Value | None) -> Shape | None:
        """The shape of a value, where it is known."""
        known = self.program.term(value) if value is not None and value.graph is self.graph else None
        return None if known is None else known.shape

    def begins(self, value: ir.Value) -> bool:
        """Whether the first axis of a value has the size of the batch."""
        known = self.program.term(value)
        if known is None or not known.shape or value.graph is not self.graph:
            return False
        return known.type.dtype in _TURNED and are_equal(known.shape[0], self.size)

    def told(self, node: ir.Node, name: str, place: int) -> list[float]:
        """Numbers that an attribute says or, in later opsets, an input at a place; none where they are not known."""
        if (attribute := node.attributes.get(name)) is not None:
            return list(attribute.value)
        value = input_of(node, place)
        name = "" if value is None else value.name or ""
        return self.program.data(name).flatten().tolist() if name in self.program.constants else []

    def row_shape(self, node: ir.Node) -> list[int] | None:
        """What tells a Reshape the shape that one row has as a batch; None where that depends on other sizes."""
        name = node.inputs[1].name or "" if node.inputs[1] is not None else ""
        if name in self.program.constants:
            return [1, *map(int, self.program.data(name).flat[1:])]
        known = self.program.sizes[name].dims.flat[1:] if name in self.program.sizes else [None]
        return None if not all(isinstance(d, int) for d in known) else [1, *map(int, known)]

    def reads(self, node: ir.Node) -> list[ir.Value]:
        """What a node reads."""
        return [v for v in node.inputs if v is not None]

    def is_alike(self, value: ir.Value, rank: int) -> bool:
        """Whether a value that is no row broadcasts to all rows alike, in a result of a rank."""
        shape = self.shape(value)
        return shape is not None and (len(shape) < rank or (len(shape) == rank and is_one(shape[0])))
