"""Convolutions over whole blocks of channels, for which runtimes have their best kernels.

onnxruntime lays channels out in blocks, and needs a multiple of four that come in for that (`kNchwcChannelAlignment` of
its transformer). ShuffleNet V2 has 58 in its first stage, and what was pruned has any number. With two more, of zeros,
convolutions of single channels took a third of the time, those of all channels by all five sixths.

Of channels in groups, each group has to be of whole blocks as they are laid out, or it is unrolled and multiplied by
itself. 26 groups of 8 channels (RegNetY, Radosavovic et al. 2020) between two layers, for 14 by 14 places, took 0.74 of
the time as 13 of 16, though these multiply twice as often; 32 groups of 4 (ResNeXt, Xie et al. 2017) for 56 by 56
places 0.9 of it as 8 of 16.
"""

from __future__ import annotations

from functools import reduce
from math import gcd

from superopt.dim import Dim
from superopt.operators.conv import Conv
from superopt.operators.layout import Concat, reshaped
from superopt.operators.meanings import defines
from superopt.operators.nodes import concrete
from superopt.operators.padding import Pad
from superopt.operators.picks import Slice
from superopt.term import Term, make

BLOCK = 4
"""Of how many channels runtimes want a multiple; of fewer, what they do with them is another matter."""

LAID_OUT = 16
"""Channels are laid out in blocks of 8 or 16, by the processor; what is a multiple of this is on all."""

MOST_TIMES = 5
"""How many times more is multiplied where groups are joined, at most: 4 and a few groups of zeros."""


def is_of_whole_blocks(channels: Dim) -> bool:
    """Whether a number of channels is known to be a multiple of a block."""
    return isinstance(channels, int) and channels % BLOCK == 0


@defines("conv", "of whole blocks")
def of_whole_blocks(conv: Conv, x: Term, k: Term) -> Term | None:
    """With further channels of zeros that come in; those that come out of them, each of one, are cut off again."""
    channels, out = x.shape[1], k.shape[0]
    if not isinstance(channels, int) or channels < BLOCK or is_of_whole_blocks(channels):
        return None
    more = -channels % BLOCK
    if conv.group == 1:
        return make(conv, (with_zeros(x, 1, more), with_zeros(k, 1, more)))
    if not conv.group == channels == out:
        return None
    wide = Conv(conv.strides, conv.pads, conv.dilations, channels + more)
    return make(Slice(1, 0, channels), (make(wide, (with_zeros(x, 1, more), with_zeros(k, 0, more))),))


@defines("conv", "in fewer groups")
def in_fewer_groups(conv: Conv, x: Term, k: Term) -> Term | None:
    """Several groups as one of whole blocks, or all, whose kernel is zero where one would meet another; with further
    groups of zeros, where they do not come out even.
    """
    groups, (given, taken) = conv.group, k.shape[:2]
    if not (isinstance(groups, int) and isinstance(given, int) and isinstance(taken, int)):
        return None
    if not k.constant or x.type.rank != 4:
        return None
    given //= groups
    joined = max(LAID_OUT // gcd(LAID_OUT, taken), LAID_OUT // gcd(LAID_OUT, given))
    more = -groups % joined
    if groups**2 <= joined * (groups + more):  # to one group it is no further
        joined, more = groups, 0
    if joined == 1 or joined * (groups + more) > MOST_TIMES * groups:
        return None
    wide = Conv(conv.strides, conv.pads, conv.dilations, (groups + more) // joined)
    kernel = _of_joined_groups(with_zeros(k, 0, more * given), (groups + more) // joined, joined)
    y = make(wide, (with_zeros(x, 1, more * taken), kernel))
    return make(Slice(1, 0, groups * given), (y,)) if more else y


def _of_joined_groups(k: Term, groups: int, joined: int) -> Term:
    """The kernel of so many groups, each joined of so many: what comes of one of these takes zeros of the others."""
    out, taken = concrete(k.shape[:2], "groups")
    apart = reshaped(k, (groups, joined, out // (groups * joined), *k.shape[1:]))
    parts = [with_zeros(Slice(1, i, i + 1)(apart), 3, taken * (joined - 1 - i), taken * i) for i in range(joined)]
    return reshaped(reduce(lambda a, b: Concat(1)(a, b), parts), (out, taken * joined, *k.shape[2:]))


def with_zeros(term: Term, axis: int, more: int, before: int = 0) -> Term:
    """A term with further zeros behind an axis, and before it."""
    rank = term.type.rank
    widths = tuple(before if i == axis else more if i == rank + axis else 0 for i in range(2 * rank))
    return make(Pad(widths), (term,)) if any(widths) else term
