"""Nodes that are written anew into a model, with names that nothing has."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from superopt.arithmetic.carrier import Array
from superopt.onnx_io.naming import rename


class NewNodes:
    """New nodes, the values of which are named after what they hold; names that are `taken` are not given."""

    def __init__(self, name: str, taken: set[str]) -> None:
        self._name, self._taken = name, taken
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

    def joined(self, values: Sequence[ir.Value], axis: int) -> ir.Value:
        """Values one behind the other along an axis; one alone as it is."""
        return self.node("Concat", values, [ir.AttrInt64("axis", axis)]) if len(values) > 1 else values[0]

    def held(self, data: Array) -> ir.Value:
        """A constant."""
        return self.node("Constant", [], [ir.AttrTensor("value", ir.Tensor(data))])

    def integers(self, numbers: Sequence[int]) -> ir.Value:
        """A row of integers, as operators take them."""
        return self.held(np.array(numbers, np.int64))
