"""Pools of one axis and three as those of pictures, large ones along one axis after the other, means as convolutions.

onnxruntime 1.32 computes pools in blocks of channels as fast as it reads them, but of pictures alone: 25 places along
one axis, of 128 channels of 120, take it 56 µs, and of a picture of one row 11. Elsewhere it walks over each window, of
13 by 13 for 256 channels of 20 by 20 in 446 µs, of rows and then of columns in 84. And means, from opset 19 on, element
by element: 339 µs of those of one axis, and 4,150 of 7 by 7 of 20 channels, which a convolution computes in 79.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TypeVar

from superopt.dim import Shape
from superopt.operators.constant import filled
from superopt.operators.conv import Conv
from superopt.operators.definitions.blocks import of_whole_blocks
from superopt.operators.definitions.frames import as_row
from superopt.operators.layout import Expand, reshaped
from superopt.operators.meanings import defines
from superopt.operators.nodes import concrete
from superopt.operators.pointwise import Div, Mul
from superopt.operators.reduce import AvgPool, Pool
from superopt.term import Term, make

P = TypeVar("P", bound=Pool)

LARGE = 5
"""Windows of so many rows and columns and more are pooled by rows, and what comes of that by columns."""


@defines("maxpool", "of one row")
@defines("avgpool", "of one row")
def of_one_row(op: Pool, x: Term) -> Term | None:
    """Along one axis, as over a picture of one row."""
    if x.type.rank != 3:
        return None
    return reshaped(make(_along(op, None, 0), (as_row(x),)), op.shape(x.shape))


@defines("maxpool", "by pictures")
@defines("avgpool", "by pictures")
def by_pictures(op: Pool, x: Term) -> Term | None:
    """Along three axes: of each frame by itself, and then of all frames, each a row."""
    if x.type.rank != 5:
        return None
    n, c, frames, *size = x.shape
    y = make(_along(op, 1, 2), (reshaped(x, (n, c * frames, *size)),))
    y = make(_along(op, 0, None), (reshaped(y, (n, c, frames, y.shape[2] * y.shape[3])),))
    return reshaped(y, op.shape(x.shape))


@defines("maxpool", "one axis after the other")
@defines("avgpool", "one axis after the other")
def one_axis_after_the_other(op: Pool, x: Term) -> Term | None:
    """By rows, and what comes of that by columns: the largest of the largest, the mean of means of as many each."""
    large = all(isinstance(k, int) and k >= LARGE for k in op.kernel)
    return make(_along(op, 0, None), (make(_along(op, None, 1), (x,)),)) if large and x.type.rank == 4 else None


@defines("avgpool", "by equal weights")
def by_equal_weights(op: AvgPool, x: Term) -> Term | None:
    """As a convolution of each channel by itself; of ones, where how many places count is told by the place. Of
    one axis at once, since as means of one row they may take longer than they did.
    """
    if x.type.rank == 3:
        y = by_equal_weights(_along(op, None, 0), as_row(x))
        return None if y is None else reshaped(y, op.shape(x.shape))
    channels, counted = x.shape[1], op.whole or all(p == 0 for p in op.pads)
    decided = (channels, *op.kernel, *(() if counted else (*x.shape[2:], *op.sizes())))
    if x.type.rank != 4 or x.type.dtype == "float64" or not all(isinstance(d, int) for d in decided):
        return None  # onnxruntime has no convolutions of doubles
    conv, window = Conv(op.strides, op.pads, op.dilations, channels), (channels, 1, *op.kernel)
    if counted:
        count = math.prod(concrete(op.kernel, "a mean"))
        return _of_each(conv, x, Div()(filled(1.0, window), filled(float(count), window)))
    sums = _of_each(conv, x, filled(1.0, window))
    counts = make(replace(conv, group=1), (filled(1.0, (1, 1, *x.shape[2:])), filled(1.0, (1, 1, *op.kernel))))
    shares = Div()(filled(1.0, sums.shape[2:]), reshaped(counts, sums.shape[2:]))
    return Mul()(sums, Expand((2, 3), sums.shape)(shares))


def _of_each(conv: Conv, x: Term, k: Term) -> Term:
    """A convolution of each channel by itself, of whole blocks: others take a runtime longer than what they are for."""
    return of_whole_blocks(conv, x, k) or make(conv, (x, k))


def _along(op: P, *axes: int | None) -> P:
    """The pool along these of its axes alone; along None each place is one by itself."""

    def picked(values: Shape, otherwise: int) -> Shape:
        return tuple(otherwise if axis is None else values[axis] for axis in axes)

    pads = (*picked(op.pads[: len(op.kernel)], 0), *picked(op.pads[len(op.kernel) :], 0))
    one = {name: picked(getattr(op, name), 1) for name in ("kernel", "strides", "dilations")}
    return replace(op, pads=pads, **one)  # type: ignore[type-var]
