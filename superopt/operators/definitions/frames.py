"""Convolutions along one axis, or three, as convolutions of pictures, for which runtimes have their best kernels."""

from __future__ import annotations

from functools import reduce

from superopt.operators.declare import concrete
from superopt.operators.layout import Concat, Expand, Transpose, reshaped
from superopt.operators.linear import Conv
from superopt.operators.meanings import defines
from superopt.operators.padding import Pad
from superopt.operators.picks import Every, Slice
from superopt.operators.pointwise import Add
from superopt.term import Term, make


@defines("conv", "of one row")
def of_one_row(conv: Conv, x: Term, k: Term) -> Term | None:
    """Along one axis, as over a picture of one row: runtimes have their best kernels for pictures."""
    if x.type.rank != 3:
        return None
    images = [as_row(x), reshaped(k, (*k.shape[:2], 1, k.shape[2]))]
    (stride,), (before, after), (dilation,) = conv.strides, conv.pads, conv.dilations
    y = make(Conv((1, stride), (0, before, 0, after), (1, dilation), conv.group), images)
    return reshaped(y, (*y.shape[:2], y.shape[3]))


def as_row(x: Term) -> Term:
    """A picture of one row. What is joined stays joined, and what is repeated so: it may be taken apart, or computed
    once.
    """
    op, (n, c, size) = x.operator, x.shape
    if isinstance(op, Concat):
        return Concat(_OF_ROW[op.axis])(*map(as_row, x.inputs))
    if isinstance(op, Expand):
        return Expand(tuple(_OF_ROW[a] for a in op.axes), (n, c, 1, size))(*x.inputs)
    return reshaped(x, (n, c, 1, size))


_OF_ROW = (0, 1, 3)
"""Where axes are in a picture of one row."""


@defines("conv", "by frames")
def by_frames(conv: Conv, x: Term, k: Term) -> Term | None:
    """Along three axes, as over pictures: those that meet at one place of the first axis are channels of one."""
    if not _is_over_frames(conv, x, k) or conv.group != 1:
        return None
    n, c, o, (reach, *window) = x.shape[0], x.shape[1], k.shape[0], k.shape[2:]
    joined = reduce(lambda a, b: Concat(1)(a, b), _meeting(conv, _padded(conv, x), k, axis=2))
    frames = joined.shape[2]
    pictures = reshaped(Transpose(_TURNED)(joined), (n * frames, reach * c, *x.shape[3:]))
    kernel = reshaped(Transpose(_TURNED)(k), (o, reach * c, *window))
    y = make(_over_pictures(conv), (pictures, kernel))
    return Transpose(_TURNED)(reshaped(y, (n, frames, *y.shape[1:])))


@defines("conv", "frame by frame")
def frame_by_frame(conv: Conv, x: Term, k: Term) -> Term | None:
    """The same of groups: a sum over pictures that meet at one place. Runtimes have no kernel for channels that are
    convolved each by itself along three axes, and theirs for pictures takes half as long or less.
    """
    if not _is_over_frames(conv, x, k) or conv.group == 1:
        return None
    n, o = x.shape[0], k.shape[0]
    turned = Transpose(_TURNED)(_padded(conv, x))
    parts = []
    for i, part in enumerate(_meeting(conv, turned, k, axis=1)):
        frames = part.shape[1]
        pictures = reshaped(part, (n * frames, *part.shape[2:]))
        kernel = reshaped(Slice(2, i, i + 1)(k), (o, k.shape[1], *k.shape[3:]))
        parts.append(make(_over_pictures(conv), (pictures, kernel)))
    y = reduce(lambda a, b: Add()(a, b), parts)
    return Transpose(_TURNED)(reshaped(y, (n, frames, *y.shape[1:])))


_TURNED = (0, 2, 1, 3, 4)
"""Frames before channels, and back."""


def _is_over_frames(conv: Conv, x: Term, k: Term) -> bool:
    """Whether a convolution has three axes, of known sizes; how many images there are may be a symbol."""
    return x.type.rank == 5 and all(isinstance(d, int) for d in (*x.shape[1:], *k.shape, *conv.sizes()))


def _padded(conv: Conv, x: Term) -> Term:
    before, after = conv.pads[0], conv.pads[3]
    return x if (before, after) == (0, 0) else make(Pad((0, 0, before, 0, 0, 0, 0, after, 0, 0)), (x,))


def _meeting(conv: Conv, padded: Term, k: Term, axis: int) -> list[Term]:
    """The first of the frames that meet at each place, the second, and so on: frames lie along an axis."""
    (reach,), stride, dilation = concrete(k.shape[2:3], "frames"), conv.strides[0], conv.dilations[0]
    frames = (padded.shape[axis] - dilation * (reach - 1) - 1) // stride + 1
    parts = []
    for i in range(reach):
        start = i * dilation
        part = Slice(axis, start, start + (frames - 1) * stride + 1)(padded)
        parts.append(part if stride == 1 else Every(axis, stride)(part))
    return parts


def _over_pictures(conv: Conv) -> Conv:
    """The convolution along the other two axes."""
    return Conv(conv.strides[1:], (*conv.pads[1:3], *conv.pads[4:]), conv.dilations[1:], conv.group)
