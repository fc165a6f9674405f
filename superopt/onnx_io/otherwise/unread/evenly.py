"""Places along an axis that are evenly apart: what slices, steps of windows and dilated kernels read."""

from __future__ import annotations

from math import gcd
from typing import NamedTuple

import onnx_ir as ir

from superopt.onnx_io.new_nodes import NewNodes


class Places(NamedTuple):
    """So many places from a first one on, each a step behind the one before; a single one has a step of one."""

    first: int
    step: int
    many: int

    @property
    def last(self) -> int:
        """The last of them."""
        return self.first + self.step * (self.many - 1)

    def with_all(self, others: Places) -> Places:
        """The fewest places that these and others are among."""
        steps = [places.step for places in (self, others) if places.many > 1]
        first, last = min(self.first, others.first), max(self.last, others.last)
        return evenly(first, last, gcd(*steps, self.first - others.first))

    def within(self, size: int) -> Places | None:
        """Those of an axis of a size, of which there is one at least; None where there is none."""
        before = max(-(self.first // self.step), 0)
        after = max((self.last - size) // self.step + 1, 0)
        kept = self.many - before - after
        return evenly(self.first + before * self.step, self.last - after * self.step, self.step) if kept > 0 else None


def evenly(first: int, last: int, step: int) -> Places:
    """Places from a first to a last one."""
    return Places(first, step, (last - first) // step + 1) if last > first else Places(first, 1, 1)


def whole(size: int) -> Places:
    """All places of an axis."""
    return Places(0, 1, size)


def taken(made: NewNodes, value: ir.Value, axis: int, there: Places, places: Places) -> ir.Value:
    """Some of the places that a value has along an axis; the value itself where it has no others."""
    if there == places:
        return value
    start, end = ((place - there.first) // there.step for place in (places.first, places.last))
    step = max(places.step // there.step, 1) if places.many > 1 else 1
    bounds = (made.integers([n]) for n in (start, end + 1, axis, step))
    return made.node("Slice", [value, *bounds])


def pooled(made: NewNodes, picture: ir.Value, axis: int, there: Places, places: Places) -> ir.Value:
    """The same of a picture, as means of single places where these start with the first one and go on to the end:
    runtimes that hold channels in blocks take them so, but cut nothing out of blocks.
    """
    is_stride = places.first == there.first and places.many > 1 and there.last < places.last + places.step
    if axis < 2 or there == places or not is_stride:
        return taken(made, picture, axis, there, places)
    strides = [places.step // there.step if a == axis else 1 for a in (2, 3)]
    said = [ir.AttrInt64s("kernel_shape", [1, 1]), ir.AttrInt64s("strides", strides)]
    return made.node("AveragePool", [picture], said)
