"""Convolutions over whole blocks of channels, for which runtimes have their best kernels.

onnxruntime lays channels out in blocks, and needs a multiple of four that come in for that (`kNchwcChannelAlignment` of
its transformer). ShuffleNet V2 has 58 in its first stage, and what was pruned has any number. With two more, of zeros,
convolutions of single channels took a third of the time, those of all channels by all five sixths.
"""

from __future__ import annotations

from superopt.dim import Dim
from superopt.operators.layout import Slice
from superopt.operators.linear import Conv
from superopt.operators.meanings import defines
from superopt.operators.padding import Pad
from superopt.term import Term, make

BLOCK = 4
"""Of how many channels runtimes want a multiple; of fewer, what they do with them is another matter."""


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
        return make(conv, (_with_zeros(x, 1, more), _with_zeros(k, 1, more)))
    if not conv.group == channels == out:
        return None
    wide = Conv(conv.strides, conv.pads, conv.dilations, channels + more)
    return make(Slice(1, 0, channels), (make(wide, (_with_zeros(x, 1, more), _with_zeros(k, 0, more))),))


def _with_zeros(term: Term, axis: int, more: int) -> Term:
    rank = term.type.rank
    return make(Pad(tuple(more if i == rank + axis else 0 for i in range(2 * rank))), (term,))
