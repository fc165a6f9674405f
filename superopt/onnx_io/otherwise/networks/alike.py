"""Nodes that compute several values alike, each with weights of its own: what stands before a join of such values."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from superopt.arithmetic.carrier import Array
from superopt.onnx_io.known_sizes import MEASURES
from superopt.onnx_io.otherwise.networks.same_values import Told, are_equal, are_one, are_same, does_as, itself
from superopt.onnx_io.said import held

MOST_NODES, MOST_PLACES, MOST_HELD = 24, 96, 2**16
"""What computes one of the values has at most so many nodes and reads at most so many values; each constant among them
has so many numbers at most.
"""

Alike: TypeAlias = "tuple[ir.Value, ...]"
"""Values that stand in the same place of what is computed alike, one for each of the results."""


class Twins:
    """What values are computed by, by operators of some kinds, where that is the same but for constants and for what is
    read; what is `given` in the first of their places is not looked into. What is `known` before they run is constant.
    """

    def __init__(
        self,
        kinds: Collection[str],
        given: Collection[ir.Value] = (),
        known: Callable[[ir.Value], ir.TensorProtocol | None] = held,
    ) -> None:
        self._kinds, self._given, self._known, self._told = kinds, given, known, Told()
        self.nodes: list[tuple[ir.Node, ...]] = []
        """Nodes that stand in the same places, in the order in which they run."""
        self.weights: dict[Alike, list[Array]] = {}
        """Constants that differ."""
        self.read: list[Alike] = []
        """Values that differ, and are no results of nodes that are alike."""
        self.is_mixed = False
        """Whether constants stand where others read what is computed."""
        self.same: dict[ir.Value, ir.Value] = {}
        """What the first of values that are alike is the same as."""
        self._places: dict[ir.Value, Alike | None] = {}

    def follow(self, values: Alike) -> bool:
        """Note what values are computed by; False where that is too much, or the first one's does not say which row of
        values is meant.
        """
        given, values = values[0], tuple([itself(v) for v in values])
        self.same[given] = values[0]
        tensors = [tensor for v in values if (tensor := self._known(v)) is not None]
        if any(tensor.size > MOST_HELD for tensor in tensors):
            return False
        are_constants = len(tensors) == len(values)  # else none of them is read, which may lie in a file
        data = [np.asarray(tensor.numpy()) for tensor in tensors if are_constants]
        is_one = all(are_equal(a, data[0]) for a in data) if are_constants else are_one(values, self._told)
        row = None if is_one else values
        if values[0] in self._places:
            return self._places[values[0]] == row
        self._places[values[0]] = row
        if row is None:
            return True
        if values[0] in self._given or 0 < len(tensors) < len(row):
            self.is_mixed |= len(tensors) > 0
            self.read.append(row)
            return True
        if data:
            self.weights[row] = data
            return len({(a.shape, a.dtype) for a in data}) == 1
        nodes = [v.producer() for v in row if v.index() == row[0].index()]
        alike = tuple(node for node in nodes if node is not None and self._is_like(node, nodes[0]))
        if len(set(alike)) < len(row):  # what is read several times is computed once
            self.read.append(row)
            return True
        if alike in self.nodes:  # by another of their outputs
            return True
        inputs = zip(*(node.inputs for node in alike), strict=True)
        if len(self._places) > MOST_PLACES:
            return False
        if not all(self.follow(tuple(v for v in several if v is not None)) for several in inputs):
            return False
        self.nodes.append(alike)
        return len(self.nodes) <= MOST_NODES

    @property
    def states(self) -> set[ir.Value]:
        """What nodes give in the first of places that others of them read in the next: each step's is made of the last
        one's.
        """
        places = {node: several for several in self.nodes for node in several}
        made = [(v, places.get(node)) for row in self.read for v in row if (node := v.producer()) is not None]
        return {several[0].outputs[v.index() or 0] for v, several in made if several is not None}

    def alone(self, ends: Collection[ir.Node]) -> bool:
        """Whether nothing but nodes that they end in reads what the nodes compute, and they stand `apart`."""
        return self.apart and len(self.freed(ends)) == len(self.nodes)

    @property
    def apart(self) -> bool:
        """Whether no node stands in two places, and none is what another reads as the last one's."""
        own = {node for several in self.nodes for node in several}
        return len(own) == sum(map(len, self.nodes)) and not any(v.producer() in own for row in self.read for v in row)

    def freed(
        self, ends: Collection[ir.Node], results: Collection[ir.Value] | None = None
    ) -> list[tuple[ir.Node, ...]]:
        """The nodes that are needed for nothing but those that they end in; all others stay, and what these read. Sizes
        of what they give are told without them. Where it is told which values are their results, the ends have to read
        others still, and without ends these are outputs.
        """
        found, freed = list[tuple[ir.Node, ...]](), {*ends}

        def is_needed(value: ir.Value) -> bool:
            is_result = results is None or value in results
            users = {user for user, _ in value.uses() if user.op_type not in MEASURES}
            is_read = any(user not in freed or (user in ends and not is_result) for user in users)
            return is_read or (value.is_graph_output() and (bool(ends) or not is_result))

        for several in reversed(self.nodes):
            if not any(is_needed(v) for node in several for v in node.outputs):
                freed.update(several)
                found.append(several)
        return found

    def _is_like(self, node: ir.Node, other: ir.Node | None) -> bool:
        """Whether two nodes do the same with what they read."""
        return (
            other is not None
            and node.op_type in self._kinds
            and None not in node.inputs
            and does_as(node, other)
            and (node.op_type != "Gather" or are_same(node.inputs[1], other.inputs[1]))
        )
