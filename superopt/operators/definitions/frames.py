"""Convolutions along one axis, or three, as convolutions of pictures, for which runtimes have their best kernels."""

from __future__ import annotations

from functools import reduce

from superopt.operators.conv import Conv
from superopt.operators.layout import Concat, Expand, Transpose, reshaped
from superopt.operators.meanings import defines
from superopt.operators.nodes import concrete
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
    o, c, reach, *window = k.shape
    joined = reduce(lambda a, b: Concat(2)(a, b), _meeting(conv, x, k))
    return Transpose(_TURNED)(_of_frames(conv, joined, reshaped(Transpose(_TURNED)(k), (o, reach * c, *window))))


@defines("conv", "frame by frame")
def frame_by_frame(conv: Conv, x: Term, k: Term) -> Term | None:
    """The same as a sum over pictures that meet at one place: nothing is joined. Of groups, runtimes have no kernel for
    channels that are convolved each by itself along three axes, and theirs for pictures takes half as long or less.
    """
    if not _is_over_frames(conv, x, k):
        return None
    parts = [_of_frames(conv, part, _frame(k, i)) for i, part in enumerate(_meeting(conv, x, k))]
    return Transpose(_TURNED)(reduce(lambda a, b: Add()(a, b), parts))


@defines("conv", "all frames at once")
def all_frames_at_once(conv: Conv, x: Term, k: Term) -> Term | None:
    """The same where no more channels come out than go in: each picture is convolved once, for all places at which it
    meets others, and what comes out is moved there and added.
    """
    if not _is_over_frames(conv, x, k) or conv.group != 1 or conv.strides[0] != 1:
        return None
    o, c, reach = concrete(k.shape[:3], "channels and frames")
    if reach == 1 or o > c:
        return None
    kernel = reduce(lambda a, b: Concat(0)(a, b), [_frame(k, i) for i in range(reach)])
    found, frames = _of_frames(conv, Transpose(_TURNED)(x), kernel), len(_places(conv, x, k))
    (before, dilation) = concrete((conv.pads[0], conv.dilations[0]), "frames")
    parts = list[Term]()
    for i in range(reach):
        if (part := _moved(Slice(2, i * o, (i + 1) * o)(found), i * dilation - before, frames)) is None:
            return None
        parts.append(part)
    return Transpose(_TURNED)(reduce(lambda a, b: Add()(a, b), parts))


_TURNED = (0, 2, 1, 3, 4)
"""Frames before channels, and back."""


def _is_over_frames(conv: Conv, x: Term, k: Term) -> bool:
    """Whether a convolution has three axes, of known sizes; how many images there are may be a symbol."""
    return x.type.rank == 5 and all(isinstance(d, int) for d in (*x.shape[1:], *k.shape, *conv.sizes()))


def _of_frames(conv: Conv, turned: Term, kernel: Term) -> Term:
    """The convolution along the other two axes, of frames that stand before channels."""
    n, frames, *picture = turned.shape
    pads = (*conv.pads[1:3], *conv.pads[4:])
    over_pictures = Conv(conv.strides[1:], pads, conv.dilations[1:], conv.group)
    y = make(over_pictures, (reshaped(turned, (n * frames, *picture)), kernel))
    return reshaped(y, (n, frames, *y.shape[1:]))


def _frame(k: Term, i: int) -> Term:
    """One of the frames of a kernel."""
    return reshaped(Slice(2, i, i + 1)(k), (*k.shape[:2], *k.shape[3:]))


def _places(conv: Conv, x: Term, k: Term) -> range:
    """The places of the first axis at which a kernel is applied."""
    frames, reach = concrete((x.shape[2] + conv.pads[0] + conv.pads[3], k.shape[2]), "frames")
    (stride, dilation) = concrete((conv.strides[0], conv.dilations[0]), "steps")
    return range(0, frames - dilation * (reach - 1), stride)


def _meeting(conv: Conv, x: Term, k: Term) -> list[Term]:
    """The first of the frames that meet at each place, the second, and so on: frames stand before channels."""
    before, after = conv.pads[0], conv.pads[3]
    turned = Transpose(_TURNED)(x)
    if (before, after) != (0, 0):
        turned = make(Pad((0, before, 0, 0, 0, 0, after, 0, 0, 0)), (turned,))
    (reach, dilation), places = concrete((k.shape[2], conv.dilations[0]), "frames"), _places(conv, x, k)
    parts = []
    for start in range(0, reach * dilation, dilation):
        part = Slice(1, start, start + places[-1] + 1)(turned)
        parts.append(part if places.step == 1 else Every(1, places.step)(part))
    return parts


def _moved(part: Term, by: int, frames: int) -> Term | None:
    """So many frames, from a place on; zeros where that is before the first or after the last. None where all is."""
    (there,) = concrete(part.shape[1:2], "frames")
    start, stop = max(by, 0), min(by + frames, there)
    if start >= stop:
        return None
    part = part if (start, stop) == (0, there) else Slice(1, start, stop)(part)
    widths = (start - by, by + frames - stop)
    return part if widths == (0, 0) else make(Pad((0, widths[0], 0, 0, 0, 0, widths[1], 0, 0, 0)), (part,))
