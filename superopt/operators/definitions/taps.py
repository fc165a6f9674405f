"""Convolutions to few channels by taps: the columns of a kernel are channels first, then added up in their places.

`y[o, p, q] = Σ_j (Σ_{c,i} x[c, p + i, q + j] · k[o,c,i,j])`: what stands in brackets is, for each column j of the
kernel, a channel of a convolution of single columns, and their sum one by zeros and ones. Runtimes compute channels in
blocks of 8 or 16: of three, most are computed for nothing, and of three times the columns of the kernel few. On an AMD
EPYC with AVX-512 onnxruntime 1.32 takes for 3 channels of 32 by kernels of 9 by 9 a third of the time, for 3 of 64 by
7 by 7 likewise; with the second by phases less than all by phases.
"""

from __future__ import annotations

from superopt.operators.constant import Band
from superopt.operators.conv import Conv
from superopt.operators.definitions.blocks import LAID_OUT
from superopt.operators.definitions.phases import WORTH
from superopt.operators.layout import Transpose, reshaped
from superopt.operators.meanings import defines
from superopt.operators.nodes import concrete
from superopt.term import Term, make


@defines("conv", "by taps", rounds=True)
def by_taps(conv: Conv, x: Term, k: Term) -> Term | None:
    """Of pictures, by constant kernels at stride 1, where less is multiplied; what is infinite spreads along rows."""
    plain = x.type.rank == 4 and k.constant and conv.strides == (1, 1) and conv.group == 1
    if not plain or not all(isinstance(d, int) for d in (*k.shape, *conv.pads, *conv.dilations)):
        return None
    o, c, rows, columns = concrete(k.shape, "taps")
    first = o * columns
    taps, direct = _time(c, rows, first) + _time(_whole(first), columns, o), _time(c, rows * columns, o)
    if rows == 1 or columns == 1 or taps > WORTH * direct:
        return None
    top, left, bottom, right = conv.pads
    of_columns = reshaped(Transpose((0, 3, 1, 2))(k), (first, c, rows, 1))
    in_place = Transpose((0, 2, 1))(reshaped(make(Band(first), ()), (o, columns, first)))
    y = make(Conv((1, 1), (top, 0, bottom, 0), (conv.dilations[0], 1)), (x, of_columns))
    ones = reshaped(in_place, (o, first, 1, columns))
    return make(Conv((1, 1), (0, left, 0, right), (1, conv.dilations[1])), (y, ones))


def _time(taken: int, window: int, given: int) -> float:
    """What a place takes, in products: each block of channels that are given, after the first, half as long."""
    return taken * window * (1 + _whole(given) / LAID_OUT) / 2


def _whole(channels: int) -> int:
    """Channels with those that fill their last block."""
    return -(-channels // LAID_OUT) * LAID_OUT
