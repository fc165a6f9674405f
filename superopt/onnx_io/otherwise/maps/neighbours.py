"""The four neighbours of places that lie between elements of a map: which rows these are, and how each counts.

Of a place p along an axis of w elements, b = min(max(⌊p⌋, 0), w - 2) and b + 1 are two that are there, and their
weights are `max(0, 1 - |p - b|)` and `max(0, 1 - |p - b - 1|)`: nothing beyond the map counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx_ir as ir

from superopt.arithmetic.carrier import Array
from superopt.onnx_io.new_nodes import NewNodes
from superopt.onnx_io.otherwise.maps.deformable import Attention
from superopt.onnx_io.otherwise.maps.scaled import Scaled, scaled
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import told

WIDE = 2**10
"""Constants are repeated up to so many elements, as runtimes broadcast short rows slowly."""


class Neighbours:
    """Writes, for all maps and queries in the order of an attention, which rows are taken and how they count."""

    def __init__(self, program: Program, one: Attention, made: NewNodes, there: Mapping[str, ir.Value]) -> None:
        self._program, self._one, self._made, self._there = program, one, made, there
        self._factor, self._shift = 1.0, 0.0
        sizes = told([one.sizes[a] for a in one.order])
        assert sizes is not None
        self.sizes = sizes

    def rows_and_weights(self) -> tuple[ir.Value, ir.Value]:
        """The four rows of each place of a query, one place after the other, and the weight of each."""
        one, made = self._one, self._made
        x, y = self._places()
        left, *beside = self._along(x, [(level.width, level.corners) for level in one.levels])
        top, *below = self._along(y, [(level.height, level.corners) for level in one.levels])
        down, right = [level.below for level in one.levels], [level.beside for level in one.levels]
        within = made.node("Add", [self._times(top, down), self._times(left, right)])
        cast = made.cast(within, ir.DataType.INT32)
        first = made.node("Max", [cast, made.held(np.array(0, np.int32))])  # a place that is no number is in no row
        for behind in self._maps():
            first = made.node("Add", [first, behind])
        given = made.reshaped(self._there[one.weights], [*self.sizes, one.points])
        steps = [[i * d + j * r for d, r in zip(down, right, strict=True)] for i in (0, 1) for j in (0, 1)]
        rows = [made.node("Add", [first, self._each(step, np.int32)]) if any(step) else first for step in steps]
        weights = [made.node("Mul", [v, h]) for v in [made.node("Mul", [w, given]) for w in below] for h in beside]
        four = 4 * one.points
        return self._beside_each_other(rows, [-1, four]), self._beside_each_other(weights, [-1, 1, four])

    def _places(self) -> Sequence[ir.Value]:
        """Places along both axes, on all levels."""
        one, made, rank = self._one, self._made, len(self.sizes)
        read = [scaled(self._program, self._there[name]) for name, _ in one.places]
        if len({found[1:] for found in read}) == 1:
            (_, self._factor, self._shift), *_ = read
        else:
            read = [Scaled(self._there[name], 1.0, 0.0) for name, _ in one.places]
        each = zip(read, one.places, strict=True)
        both = made.joined([made.reshaped(found.of, [*self.sizes, many, 2]) for found, (_, many) in each], rank)
        halves = made.parts(both, [1, 1], rank + 1)
        return [made.reshaped(half, [*self.sizes, one.points]) for half in halves]

    def _along(self, place: ir.Value, sizes: list[tuple[int, bool]]) -> tuple[ir.Value, ir.Value, ir.Value]:
        """Of places along an axis, which are between -1 and 1, the first of two neighbours, and how both count."""
        made, one, none = self._made, self._made.held(np.array(1, np.float32)), self._made.held(np.array(0, np.float32))
        scale = [(n - corners) / 2 for n, corners in sizes]
        middle = [(n - 1) / 2 + s * self._shift for (n, _), s in zip(sizes, scale, strict=True)]
        scale = [s * self._factor for s in scale]
        at = made.node("Add", [self._times(place, scale), self._each(middle, np.float32)])
        most = self._each([n - 2 for n, _ in sizes], np.float32)
        base = made.node("Max", [made.node("Min", [made.node("Floor", [at]), most]), none])
        behind = made.node("Sub", [at, base])
        distances = [made.node("Abs", [d]) for d in (behind, made.node("Sub", [behind, one]))]
        first, second = (made.node("Relu", [made.node("Sub", [one, d])]) for d in distances)
        return base, first, second

    def _maps(self) -> list[ir.Value]:
        """The first row of each map: of those of each level and head, and of each batch where there is any number."""
        one, rank = self._one, len(self.sizes)
        levels = np.repeat([level.first for level in one.levels], [level.points for level in one.levels])
        first: Array = levels.reshape([1] * rank + [-1])
        found = list[ir.Value]()
        for axis, a in enumerate(one.order):
            shape, between = [-1 if axis == i else 1 for i in range(rank + 1)], one.between[a]
            if between and self.sizes[axis] < 0:
                found.append(self._batches(between, shape))
            elif between:
                first = first + between * np.arange(self.sizes[axis]).reshape(shape)
        return [self._made.held(first.astype(np.int32)), *found]

    def _batches(self, between: int, shape: list[int]) -> ir.Value:
        """The first rows of the maps of each batch, as many as the first axis of values has."""
        made, values = self._made, self._there[self._one.values]
        many = made.node("Gather", [made.node("Shape", [values]), made.held(np.array(0, np.int64))])
        start, step = made.held(np.array(0, np.int64)), made.held(np.array(between, np.int64))
        each = made.node("Range", [start, made.node("Mul", [many, step]), step])
        cast = made.cast(each, ir.DataType.INT32)
        return made.reshaped(cast, shape)

    def _times(self, value: ir.Value, numbers: Sequence[float]) -> ir.Value:
        return self._made.node("Mul", [value, self._each(numbers, np.float32)])

    def _each(self, numbers: Sequence[float], dtype: type[np.generic]) -> ir.Value:
        """A number for all places of each level; one for all where they are the same."""
        if len(set(numbers)) == 1:
            return self._made.held(np.array(numbers[0], dtype))
        row: Array = np.repeat(np.array(numbers, dtype), [level.points for level in self._one.levels])
        last = self.sizes[-1]
        return self._made.held(np.tile(row, (last, 1)) if 0 < last * len(row) <= WIDE else row)

    def _beside_each_other(self, four: Sequence[ir.Value], shape: Sequence[int]) -> ir.Value:
        """What all places have of four neighbours, that of each place beside each other."""
        made = self._made
        flat = [made.reshaped(value, [1, -1]) for value in four]
        turned = made.transposed(made.joined(flat, 0), [1, 0])
        return made.reshaped(turned, shape)
