"""Boxes of other values that are written beside each other, with zeros around and between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

import onnx_ir as ir

from superopt.dim import Dim, Shape
from superopt.onnx_io.new_nodes import NewNodes
from superopt.onnx_io.otherwise.places.boxes import Part, Parts, Range, UntoldError, fewer
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import told
from superopt.relations import are_equal, equal_shapes

Region: TypeAlias = tuple[Range, ...]


class Beside:
    """A value of a shape, made of its parts."""

    def __init__(self, program: Program, shape: Shape, parts: Parts) -> None:
        labels = {part.of for part in parts}
        self._shapes = {label: program.values[label].shape for label in labels}
        zeros = {label for label in labels if label in program.constants and not program.data(label).any()}
        self._region: Region = tuple((0, d) for d in shape)
        self._parts = fewer([part for part in parts if part.of not in zeros])

    @property
    def count(self) -> int:
        """Of how many parts it is made, but for zeros."""
        return len(self._parts)

    def written(self, made: NewNodes, there: Mapping[str, ir.Value]) -> ir.Value:
        """The value, of others that are `there`. Raises `UntoldError` where it is all zeros, or has sizes that are
        symbols, of which a node would have to tell several.
        """
        return self._filled(made, there, self._region, self._parts)

    def _filled(self, made: NewNodes, there: Mapping[str, ir.Value], region: Region, parts: Parts) -> ir.Value:
        """What is in a region."""
        if not parts:
            raise UntoldError
        if len(parts) == 1:
            (part,) = parts
            return _padded(made, self._value(made, there[part.of], part), part, region)
        axis, bounds = _cut(region, parts)
        values = []
        for start, stop in pairwise(bounds):
            inside = [cut for part in parts if (cut := part.within(axis, start, stop)) is not None]
            within = (*region[:axis], (start, stop), *region[axis + 1 :])
            values.append(self._filled(made, there, within, inside))
        return made.joined(values, axis)

    def _value(self, made: NewNodes, value: ir.Value, part: Part) -> ir.Value:
        """What stands in the box of a part."""
        whole, own = self._shapes[part.of], {axis: a for a, axis in enumerate(part.axes) if axis is not None}
        sizes: list[Dim] = [part.sizes[own[axis]] if axis in own else 1 for axis in range(len(whole))]
        told_sizes = [(axis, size) for axis, size in enumerate(sizes) if isinstance(size, int)]
        cut = [(axis, part.first[axis], size) for axis, size in told_sizes if not are_equal(size, whole[axis])]
        if cut:
            bounds = (
                [first for _, first, _ in cut],
                [first + size for _, first, size in cut],
                [axis for axis, *_ in cut],
            )
            value = made.node("Slice", [value, *map(made.integers, bounds)])
        order = [axis for axis in part.axes if axis is not None]
        if order != sorted(order):
            order = [axis for axis in range(len(whole)) if axis not in own] + order
            value = made.transposed(value, order)
            sizes = [sizes[axis] for axis in order]
        if equal_shapes(tuple(sizes), part.sizes):
            return value
        if (as_told := told(part.sizes)) is None:
            raise UntoldError
        return made.reshaped(value, as_told)


def _padded(made: NewNodes, value: ir.Value, part: Part, region: Region) -> ir.Value:
    """What stands in the box of a part, with zeros around it to the bounds of a region."""
    pads = [
        [abs(here - there) if isinstance(here, int) and isinstance(there, int) else 0 for here, there in ends]
        for ends in zip(*(zip(*pair, strict=True) for pair in zip(part.box, region, strict=True)), strict=True)
    ]
    return made.node("Pad", [value, made.integers([*pads[0], *pads[1]])]) if any(map(any, pads)) else value


def _cut(region: Region, parts: Sequence[Part]) -> tuple[int, list[Dim]]:
    """The axis along which a region is cut, and where: that of the fewest parts that are cut with it, the first of
    several. There is something in all that is cut off.
    """
    found = list[tuple[int, int, list[Dim]]]()
    for axis, (first, last) in enumerate(region):
        every = [part.box[axis] for part in parts]
        ranges = [(a, b) for a, b in every if isinstance(a, int) and isinstance(b, int)]
        ends = sorted({d for pair in ranges for d in pair} - {first}) if isinstance(last, int) else []
        strips = pairwise([first, *ends])
        held = [start for start, stop in strips if any(a < stop and start < b for a, b in ranges)]
        bounds = [first, *held[1:], last]
        crossed = sum(a < at < b for a, b in ranges for at in bounds[1:-1] if isinstance(at, int))
        if len(held) > 1:
            found.append((crossed, axis, bounds))
    _, axis, bounds = min(found, key=lambda one: one[:2])
    return axis, bounds
