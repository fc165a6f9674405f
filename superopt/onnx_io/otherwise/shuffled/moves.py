"""Nodes that only move channels, told by a number for each channel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from superopt.dim import Dim, Shape, product
from superopt.onnx_io.naming import name_of
from superopt.onnx_io.operator_kinds import VIEWS
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import data_of, integers_of, shape_of
from superopt.onnx_io.said import concat_axis, is_a, number, permuted
from superopt.relations import are_equal, equal_shapes, is_one

Numbers = NDArray[np.int64]

COPIES = ("Concat", "Gather", "Slice", "Split", "Transpose")
"""What moves channels and copies them for that."""


class Laid(NamedTuple):
    """A value of images: the number of the channel that lies at each place of its axes before those of the places in
    an image, `around`; the axis before them, of images, is not counted where it is of more than one.
    """

    channels: Numbers
    images: Dim
    around: Shape
    made: Shape
    """The places in an image as what makes the channels has them; a view may join those around, or leave ones out."""

    @property
    def shape(self) -> Shape:
        """The sizes of the value."""
        return (*([] if is_one(self.images) else [self.images]), *self.channels.shape, *self.around)

    @property
    def first(self) -> int:
        """The axis of the value that is the first of its channels."""
        return 0 if is_one(self.images) else 1

    @property
    def row(self) -> Numbers | None:
        """The channels of a value that is as what makes them could give it; None where its axes are others."""
        row = self.channels.reshape(-1)
        is_so = self.channels.shape == ((1, row.size) if is_one(self.images) else (row.size,))
        return row if is_so and equal_shapes(self.around, self.made) else None


def laid(channels: Numbers, shape: Shape) -> Laid:
    """A value of a shape whose channels have these numbers."""
    return Laid(channels[None] if is_one(shape[0]) else channels, shape[0], shape[2:], shape[2:])


def moved(program: Program, node: ir.Node, known: Mapping[str, Laid]) -> list[Laid] | None:
    """How the results of a node lie that only moves whole channels of what it reads; None of others."""
    read = [known.get(name_of(v)) for v in node.inputs if v is not None]
    x = read[0] if read else None
    shapes = [shape_of(program, value) for value in node.outputs]
    if x is None or any(shape is None for shape in shapes):
        return None
    found = _moved(program, node, x, read, [shape or () for shape in shapes])
    is_so = found is not None and all(equal_shapes(f.shape, s or ()) for f, s in zip(found, shapes, strict=True))
    return found if is_so else None


def _moved(program: Program, node: ir.Node, x: Laid, read: list[Laid | None], shapes: list[Shape]) -> list[Laid] | None:
    rank = len(x.shape)
    if is_a(node, "Identity"):
        return [x]
    if is_a(node, *VIEWS):
        view = _viewed(x, shapes[0])
        return None if view is None else [view]
    if is_a(node, "Transpose"):
        axes = [axis - x.first for axis in permuted(node, rank)]
        many = x.channels.ndim
        stays = axes[: x.first] == [-1] * x.first and axes[x.first + many :] == list(range(many, rank - x.first))
        return [x._replace(channels=x.channels.transpose(axes[x.first : x.first + many]))] if stays else None
    if is_a(node, "Slice"):
        return _sliced(program, node, x)
    if is_a(node, "Concat"):
        alike = [r for r in read if r is not None and _is_alike(r, x)]
        axis = concat_axis(node) % rank - x.first
        if len(alike) < len(node.inputs) or not 0 <= axis < x.channels.ndim:
            return None
        return [x._replace(channels=np.concatenate([r.channels for r in alike], axis))]
    if is_a(node, "Split", "Gather"):
        axis = number(node, "axis", 0) % rank - x.first
        return _parts(program, node, x, axis, shapes) if 0 <= axis < x.channels.ndim else None
    return None


def _viewed(x: Laid, shape: Shape) -> Laid | None:
    """The same elements by other sizes, where the places in an image stay together behind all else."""
    front = [] if is_one(x.images) else [x.images]
    if len(shape) < len(front) or not all(map(are_equal, shape, front)):
        return None
    for k in (len(x.made), len(x.around), *range(len(shape) + 1)):
        sizes, around = shape[len(front) : len(shape) - k], shape[len(shape) - k :]
        numbers = [d for d in sizes if isinstance(d, int)]
        is_so = len(front) + k <= len(shape) and len(numbers) == len(sizes)
        if is_so and product(numbers) == x.channels.size and are_equal(product(around), product(x.around)):
            return x._replace(channels=x.channels.reshape(numbers), around=around)
    return None


def _is_alike(a: Laid, b: Laid) -> bool:
    """Whether two values differ in their channels alone."""
    return are_equal(a.images, b.images) and equal_shapes(a.around, b.around) and equal_shapes(a.made, b.made)


def _sliced(program: Program, node: ir.Node, x: Laid) -> list[Laid] | None:
    starts, ends = (integers_of(program, node, name, place) for name, place in (("starts", 1), ("ends", 2)))
    axes, steps = (integers_of(program, node, name, place) for name, place in (("axes", 3), ("steps", 4)))
    if starts is None or ends is None or axes is None or steps is None or len(starts) != len(ends):
        return None
    cut = [slice(None)] * x.channels.ndim
    for axis, start, end, step in zip(
        axes or range(len(starts)), starts, ends, steps or [1] * len(starts), strict=True
    ):
        place = axis % len(x.shape) - x.first
        if step < 1 or not 0 <= place < len(cut):
            return None
        cut[place] = slice(start, end, step)
    return [x._replace(channels=x.channels[tuple(cut)])]


def _parts(program: Program, node: ir.Node, x: Laid, axis: int, shapes: list[Shape]) -> list[Laid] | None:
    if is_a(node, "Gather"):
        places = data_of(program, node.inputs[1])
        size = x.channels.shape[axis]
        if places is None or not ((places >= -size) & (places < size)).all():
            return None
        return [x._replace(channels=np.take(x.channels, places.astype(np.int64), axis))]
    sizes = [shape[axis + x.first] for shape in shapes]
    numbers = [d for d in sizes if isinstance(d, int)]
    if len(numbers) < len(sizes) or sum(numbers) != x.channels.shape[axis]:
        return None
    return [x._replace(channels=c) for c in np.split(x.channels, np.cumsum(numbers)[:-1], axis)]
