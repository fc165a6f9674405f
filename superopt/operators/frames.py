"""Convolutions along one axis, or three, as convolutions of pictures, for which runtimes have their best kernels."""

from __future__ import annotations

from functools import reduce

from superopt.operators.declare import concrete, defines
from superopt.operators.layout import Concat, Every, Slice, Transpose, reshaped
from superopt.operators.linear import Conv
from superopt.operators.padding import Pad
from superopt.term import Term, make


@defines("conv", "of one row")
def of_one_row(conv: Conv, x: Term, k: Term) -> Term | None:
    """Along one axis, as over a picture of one row: runtimes have their best kernels for pictures."""
    if x.type.rank != 3:
        return None
    images = [reshaped(t, (*t.shape[:2], 1, t.shape[2])) for t in (x, k)]
    (stride,), (before, after), (dilation,) = conv.strides, conv.pads, conv.dilations
    y = make(Conv((1, stride), (0, before, 0, after), (1, dilation), conv.group), images)
    return reshaped(y, (*y.shape[:2], y.shape[3]))


@defines("conv", "by frames")
def by_frames(conv: Conv, x: Term, k: Term) -> Term | None:
    """Along three axes, as over pictures: those that meet at one place of the first axis are channels of one."""
    sizes = (*x.shape[1:], *k.shape, *conv.sizes())  # how many images there are may be a symbol
    if x.type.rank != 5 or conv.group != 1 or not all(isinstance(d, int) for d in sizes):
        return None
    n, c, _, *_ = x.shape
    o, _, reach, *window = k.shape
    (stride, *strides), (dilation, *dilations) = conv.strides, conv.dilations
    (before, *low), (after, *high) = conv.pads[:3], conv.pads[3:]
    padded = x if (before, after) == (0, 0) else make(Pad((0, 0, before, 0, 0, 0, 0, after, 0, 0)), (x,))
    frames = make(conv, (x, k)).shape[2]
    parts = []
    for i in range(concrete((reach,), "frames")[0]):  # the i-th of those that meet, for every place
        start = i * dilation
        part = Slice(2, start, start + (frames - 1) * stride + 1)(padded)
        parts.append(part if stride == 1 else Every(2, stride)(part))
    joined = reduce(lambda a, b: Concat(1)(a, b), parts)
    pictures = reshaped(Transpose((0, 2, 1, 3, 4))(joined), (n * frames, reach * c, *x.shape[3:]))
    kernel = reshaped(Transpose((0, 2, 1, 3, 4))(k), (o, reach * c, *window))
    y = make(Conv(tuple(strides), (*low, *high), tuple(dilations)), (pictures, kernel))
    return Transpose((0, 2, 1, 3, 4))(reshaped(y, (n, frames, *y.shape[1:])))
