"""Nodes that multiply each place of a row with those of another row that are as near as shifts go."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from superopt.onnx_io.new_nodes import NewNodes
from superopt.onnx_io.otherwise.maps.shifted import Run


class Band(NamedTuple):
    """A run of planes, of maps of such sizes, one of which may be -1, and how many places are multiplied at once."""

    run: Run
    still: list[int]
    shifted: list[int]
    block: int
    dtype: str

    @property
    def lead(self) -> list[int]:
        """The batch, and the groups where there are several."""
        return [self.still[0], self.run.first.groups][: 1 + (self.run.first.groups > 1)]

    @property
    def channels(self) -> int:
        """Those of a group."""
        return self.still[1] // self.run.first.groups

    @property
    def near(self) -> int:
        """With how many places each block of a row is multiplied."""
        return self.block + self.run.length - 1

    def written(self, made: NewNodes, still: ir.Value, shifted: ir.Value) -> ir.Value:
        """The planes of two maps, behind batch and groups."""
        (rows, columns), lead = self.still[2:], self.lead
        if self.run.first.factor != 1:
            still = made.node("Mul", [still, made.held(np.array(self.run.first.factor, self.dtype))])
        blocks, rank = columns // self.block, len(lead)
        left = self._apart(made, still, columns)
        left = made.transposed(left, _behind(rank, 1, 2, 0))
        left = made.reshaped(left, [*lead, rows, blocks, self.block, self.channels])
        right = self._apart(made, self._near(made, shifted), columns + self.run.length - 1)
        right = made.transposed(right, _behind(rank, 1, 0, 2))
        right = made.joined([self._window(made, right, i) for i in range(blocks)], rank + 1)
        every = made.node("MatMul", [left, right])
        every = made.reshaped(every, [*lead, rows, blocks, self.block * self.near])
        widths = [0] * (2 * rank + 5) + [self.block]
        every = made.node("Pad", [every, made.integers(widths)])
        every = made.reshaped(every, [*lead, rows, blocks, self.block, self.near + 1])
        every = made.sliced(every, 0, self.run.length, rank + 3)
        every = made.reshaped(every, [*lead, rows, columns, self.run.length])
        every = made.transposed(every, _behind(rank, 2, 0, 1))
        if self.run.step < 0:
            turned = made.integers(range(self.run.length - 1, -1, -1))
            every = made.node("Gather", [every, turned], [ir.AttrInt64("axis", rank)])
        return every

    def _apart(self, made: NewNodes, value: ir.Value, columns: int) -> ir.Value:
        """A map with its channels in groups, where these are several."""
        if len(self.lead) == 1:
            return value
        return made.reshaped(value, [*self.lead, self.channels, self.still[2], columns])

    def _near(self, made: NewNodes, value: ir.Value) -> ir.Value:
        """The rows and columns of the shifted map with which something is multiplied, with zeros where it has none."""
        first, (rows, columns), bounds = self.run.first, self.shifted[2:], list[tuple[int, int, int]]()
        if rows != self.still[2]:
            bounds.append((first.down, first.down + self.still[2], 2))
        start, stop = self.run.least, self.run.least + self.still[3] + self.run.length - 1
        if start > 0 or stop < columns:
            bounds.append((max(0, start), min(stop, columns), 3))
        if bounds:
            value = made.node("Slice", [value, *(made.integers(row) for row in zip(*bounds, strict=True))])
        widths = [0, 0, 0, max(0, -start), 0, 0, 0, max(0, stop - columns)]
        return made.node("Pad", [value, made.integers(widths)]) if any(widths) else value

    def _window(self, made: NewNodes, rows: ir.Value, i: int) -> ir.Value:
        """What a block of a row is multiplied with, beside an axis of blocks."""
        rank = len(self.lead)
        if self.block < self.still[3]:
            rows = made.sliced(rows, i * self.block, i * self.block + self.near, rank + 2)
        return made.node("Unsqueeze", [rows, made.integers([rank + 1])])


def _behind(lead: int, *axes: int) -> list[int]:
    """The order of axes behind the first ones, which stay."""
    return [*range(lead), *(lead + axis for axis in axes)]
