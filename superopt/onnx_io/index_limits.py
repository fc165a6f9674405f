"""Of how many numbers, from 0, an input of integers may hold each: where it chooses rows, as many as there are.

Without that, of all words only the first two would ever be seen, and of all nodes that edges point at. Which numbers a
model accepts is declared nowhere: it is told by all that its nodes do with them, and not at all where one may do
anything.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from superopt.arithmetic.carrier import Array
from superopt.dim import Dim
from superopt.errors import InvalidModel
from superopt.onnx_io.operator_kinds import MOVES
from superopt.onnx_io.program import Program
from superopt.onnx_io.skeleton import ONNX_DOMAIN
from superopt.substitution import substitute

FEW = 2
"""What inputs are drawn of where nothing is known of them (`Draw` in `cost/inputs.py`)."""

MOST_COLUMNS = 1000
"""Places along an axis that are told apart, at most."""

DEEPEST = 100
"""Nodes that pass numbers on one after the other are followed, at most."""


_PASSED_ON: dict[str, tuple[int, ...]] = {
    **dict.fromkeys((*MOVES, "Cast", "Clip", "GatherElements", "GatherND", "Split"), (0,)),
    "Where": (1, 2),
}
"""The inputs whose numbers the outputs hold; of a Concat, all."""

_ASKED = frozenset(("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "ArgMax", "ArgMin", "Shape", "Size"))
"""What takes any number, and gives none that is as large because of it."""

_NUMERIC = frozenset(("DequantizeLinear", "ConvInteger", "QLinearConv", "MatMulInteger", "QLinearMatMul"))
"""What takes 8 bits as the number that they are; so does a Cast to floating point."""

_TABLES = {("EmbedLayerNormalization", 0): 2, ("EmbedLayerNormalization", 1): 4, ("GatherBlockQuantized", 1): 0}
"""Of operators of onnxruntime's own: which of its inputs is the table whose rows an input chooses."""

_BYTES = {"uint8": 2**8, "int8": 2**7}


Limit: TypeAlias = "int | tuple[int, ...]"
"""Of how many numbers, from 0: of one for all elements, or of one for each place along the last axis."""


def index_limits(program: Program, sizes: Mapping[str, int]) -> dict[str, Limit]:
    """For each input of integers of which others than a `FEW` may be drawn, of how many, where symbols have these
    sizes: where they choose places, as many as the shortest such axis has; where they are compared with all of some,
    those; and of images of 8 bits, all that are not negative.
    """
    found = {}
    for value in program.model.graph.inputs:
        if value.name in program.inputs and value.dtype is not None and value.dtype.is_integer():
            of_each = _Limits(program, sizes).of_columns(value)
            found[value.name] = of_each[0] if len(set(of_each)) == 1 else of_each
    return {name: limit for name, limit in found.items() if limit != FEW}


class _Limits:
    """What nodes say of values; each value is looked at once."""

    def __init__(self, program: Program, sizes: Mapping[str, int]) -> None:
        self.program, self.sizes = program, sizes
        self.known: dict[ir.Value, float] = {}
        self.compared = 0.0

    def of(self, value: ir.Value, deepest: int = DEEPEST) -> float:
        """Infinite where nothing limits it, through so many nodes."""
        if deepest and value not in self.known:
            limits = (self._at(value, node, place, deepest - 1) for node, place in value.uses())
            self.known[value] = min(limits, default=math.inf)
        return self.known.get(value, FEW)

    def of_columns(self, value: ir.Value) -> tuple[int, ...]:
        """One for each place along the last axis, where there are few of these: each may choose of another table."""
        shape = self._shape(value)
        last = shape[-1] if shape else 1
        found = [math.inf] * (last if isinstance(last, int) and last <= MOST_COLUMNS else 1)
        for node, place in value.uses():
            columns = self._column(node, place, len(shape or ()) - 1, len(found))
            limit = self._at(value, node, place, DEEPEST) if columns is None else self.of(node.outputs[0])
            for column in columns or range(len(found)):
                found[column] = min(found[column], limit)
        return tuple(max(int(limit), 1) if limit < math.inf else max(int(self.compared), FEW) for limit in found)

    def _column(self, node: ir.Node, place: int, last: int, count: int) -> Sequence[int] | None:
        """The places along the last axis of an input that a node takes of it, of so many; None for all."""
        if node.op_type != "Gather" or node.domain not in ONNX_DOMAIN or place or count == 1:
            return None
        data = self._integers(node.inputs[1])
        if data is None or not data.size or node.attributes.get_int("axis", 0) not in (last, -1):
            return None
        return [int(column) % count for column in data.flat]

    def _at(self, value: ir.Value, node: ir.Node, place: int, deepest: int) -> float:
        if node.domain not in ONNX_DOMAIN:
            return min((self._size(dim) for dim in self._of_table(node, place)), default=FEW)
        to = ir.DataType(node.attributes.get_int("to", 0)) if node.op_type == "Cast" else ir.DataType.UNDEFINED
        if to == ir.DataType.BOOL:
            return math.inf
        if to.is_floating_point() or node.op_type in _NUMERIC:
            return self._numbers(value)
        if node.op_type == "Concat" or place in _PASSED_ON.get(node.op_type, ()):
            return min(self.of(output, deepest) for output in node.outputs)
        if node.op_type == "Add":
            return self._before_sum(node, place, deepest)
        if node.op_type in _ASKED:
            self.compared = max(self.compared, *map(self._all_of, node.inputs))
            return math.inf
        return min((self._size(dim) for dim in self._chosen(node, place)), default=FEW)

    def _before_sum(self, node: ir.Node, place: int, deepest: int) -> float:
        """Of a sum with constants, as where the rows of several tables begin in one."""
        first = self._integers(node.inputs[1 - place])
        if first is None or not first.size or first.min() < 0:
            return FEW
        return max(self.of(node.outputs[0], deepest) - int(first.max()), FEW)

    def _numbers(self, value: ir.Value) -> float:
        """Of 8 bits, all that are not negative; what is longer may be a mask, if nothing else tells what it is."""
        term = self.program.term(value)
        return FEW if term is None else _BYTES.get(term.type.dtype, math.inf)

    def _chosen(self, node: ir.Node, place: int) -> Sequence[Dim]:
        """The sizes of the axes of which an input of a node chooses places, if it does."""
        if node.op_type == "OneHot" and place == 0:
            return self._depth(node.inputs[1])
        shape = self._shape(node.inputs[0])
        if shape is None or place != 1:
            return ()
        if node.op_type in ("Gather", "GatherElements", "ScatterElements"):
            axis = node.attributes.get_int("axis", 0)
            return shape[axis : axis + 1 or None]
        if node.op_type in ("GatherND", "ScatterND"):
            first, indices = node.attributes.get_int("batch_dims", 0), self._shape(node.inputs[1])
            length = indices[-1] if indices else None
            return shape[first : first + length] if isinstance(length, int) else ()
        return ()

    def _of_table(self, node: ir.Node, place: int) -> Sequence[Dim]:
        table = _TABLES.get((node.op_type, place)) if node.domain == "com.microsoft" else None
        shape = None if table is None else self._shape(node.inputs[table])
        return shape[:1] if shape else ()

    def _depth(self, value: ir.Value | None) -> Sequence[Dim]:
        data = self._integers(value)
        return () if data is None or data.size != 1 else (int(data.reshape(())),)

    def _all_of(self, value: ir.Value | None) -> float:
        """How many numbers, from 0, a value holds all of, as one is compared with to be one-hot, and a length to be a
        mask; else 0.
        """
        data = self._integers(value)
        if data is not None:
            numbers = np.unique(data)
            return numbers.size if np.array_equal(numbers, np.arange(numbers.size)) else 0
        node = value.producer() if value is not None else None
        if node is None or node.domain not in ONNX_DOMAIN:
            return 0
        if node.op_type == "Range":
            shape = self._shape(node.outputs[0])
            return self._size(shape[0]) if shape else 0
        return self._all_of(node.inputs[0]) if 0 in _PASSED_ON.get(node.op_type, ()) else 0

    def _integers(self, value: ir.Value | None) -> Array | None:
        name = (value.name or "") if value is not None else ""
        if name not in self.program.constants:
            return None
        try:
            data = self.program.data(name)
        except InvalidModel:  # it cannot be computed
            return None
        return data if data.dtype.kind in "iu" else None

    def _shape(self, value: ir.Value | None) -> Sequence[Dim] | None:
        term = self.program.term(value)
        return None if term is None else term.shape

    def _size(self, dim: Dim) -> float:
        found = substitute(dim, self.sizes)
        return found if isinstance(found, int) else FEW
