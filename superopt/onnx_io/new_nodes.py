"""Nodes that are written anew into a model of an opset, with names that nothing has."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from superopt.arithmetic.carrier import Array
from superopt.onnx_io.naming import rename
from superopt.onnx_io.opsets import takes_axes, takes_bounds, takes_parts


class NewNodes:
    """New nodes for a model of an opset, the values of which are named after what they hold; names that are `taken` are
    not given.
    """

    def __init__(self, name: str, taken: set[str], opset: int) -> None:
        self._name, self._taken, self.opset = name, taken, opset
        self.nodes: list[ir.Node] = []

    def node(self, op_type: str, inputs: Sequence[ir.Value], attributes: Sequence[ir.Attr] = ()) -> ir.Value:
        """What a new node gives."""
        return self.several(op_type, inputs, attributes)[0]

    def several(
        self, op_type: str, inputs: Sequence[ir.Value | None], attributes: Sequence[ir.Attr] = (), outputs: int = 1
    ) -> Sequence[ir.Value]:
        """What a new node of so many outputs gives."""
        made = ir.Node("", op_type, inputs, attributes, num_outputs=outputs)
        self.nodes.append(made)
        for value in made.outputs:
            self.name(value)
        return made.outputs

    def name(self, value: ir.Value) -> None:
        """Give a value a name that nothing has, as what nodes of a subgraph give needs one too."""
        value.name = self._name
        rename(value, self._taken)

    def over(self, x: ir.Value, op_type: str, axes: Sequence[int], more: Sequence[ir.Attr] = ()) -> ir.Value:
        """An operator along axes."""
        if not takes_axes(op_type, self.opset):
            return self.node(op_type, [x], [ir.AttrInt64s("axes", list(axes)), *more])
        return self.node(op_type, [x, self.integers(axes)], more)

    def parts(self, x: ir.Value, sizes: Sequence[int], axis: int) -> Sequence[ir.Value]:
        """What lies one behind the other along an axis, apart."""
        along = ir.AttrInt64("axis", axis)
        if not takes_parts(self.opset):
            return self.several("Split", [x], [along, ir.AttrInt64s("split", sizes)], len(sizes))
        return self.several("Split", [x, self.integers(sizes)], [along], len(sizes))

    def reshaped(self, x: ir.Value, sizes: Sequence[int]) -> ir.Value:
        """A value of other sizes."""
        return self.node("Reshape", [x, self.integers(sizes)])

    def transposed(self, x: ir.Value, order: Sequence[int]) -> ir.Value:
        """A value with its axes in another order."""
        return self.node("Transpose", [x], [ir.AttrInt64s("perm", order)])

    def cast(self, x: ir.Value, to: int) -> ir.Value:
        """A value of another type, which is told as ONNX numbers types."""
        return self.node("Cast", [x], [ir.AttrInt64("to", int(to))])

    def sliced(self, x: ir.Value, start: int, end: int, axis: int) -> ir.Value:
        """Places of a value along an axis, one after the other."""
        said = {"starts": [start], "ends": [end], "axes": [axis]}
        if not takes_bounds(self.opset):
            return self.node("Slice", [x], [ir.AttrInt64s(name, numbers) for name, numbers in said.items()])
        return self.node("Slice", [x, *map(self.integers, said.values())])

    def joined(self, values: Sequence[ir.Value], axis: int) -> ir.Value:
        """Values one behind the other along an axis; one alone as it is."""
        return self.node("Concat", values, [ir.AttrInt64("axis", axis)]) if len(values) > 1 else values[0]

    def held(self, data: Array) -> ir.Value:
        """A constant."""
        return self.node("Constant", [], [ir.AttrTensor("value", ir.Tensor(data))])

    def integers(self, numbers: Sequence[int]) -> ir.Value:
        """A row of integers, as operators take them."""
        return self.held(np.array(numbers, np.int64))
