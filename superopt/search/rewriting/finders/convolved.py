"""Means of windows, and the middle of an image, as layers: both are convolutions by weights that nobody has to learn.

Blocks that are one convolution once they are trained pool a branch (diverse branch blocks; Ding et al. 2021), and add
what single places give without its border to what a kernel makes of all (FMEN; Du et al. 2022).
"""

from __future__ import annotations

from superopt.dim import Shape, product
from superopt.operators.constant import Band
from superopt.operators.conv import Conv
from superopt.operators.layout import Expand, reshaped
from superopt.operators.padding import Pad
from superopt.operators.picks import Slice
from superopt.operators.reduce import AvgPool
from superopt.operators.reductions import Mean
from superopt.search.rewriting.finders.composed import Key, Layer, work_of
from superopt.term import Term, make

MOST_CUT = 8
"""A border of more places is no kernel's."""


def convolved(term: Term) -> Layer | None:
    """Such a value as a layer; None where it is neither."""
    if term.inputs and term.inputs[0].constant:
        return None
    return _mean(term) if isinstance(term.operator, AvgPool) else _middle(term)


def _mean(term: Term) -> Layer | None:
    """The mean of windows without zeros around, of each channel by itself."""
    pool, (x,) = term.operator, term.inputs
    assert isinstance(pool, AvgPool)
    if any(pool.pads):
        return None
    shares = reshaped(Mean((0,))(make(Band(product(pool.kernel)))), pool.kernel)
    last = tuple(range(2, x.type.rank))
    weights = Expand(last, (x.shape[1], 1, *pool.kernel))(shares)
    conv = Conv(pool.strides, pool.pads, pool.dilations, x.shape[1])
    layer = Layer(Key(x, conv, pool.kernel), weights, 0)
    return layer._replace(work=work_of(layer, term.shape))


def _middle(term: Term) -> Layer | None:
    """An image without its border, as a kernel gives it that adds up nothing else."""
    x, rank = term, term.type.rank
    before, behind = [0] * rank, [0] * rank
    while isinstance(x.operator, Slice):
        axis, (of,) = x.operator.axis, x.inputs
        ends = (x.operator.start, of.shape[axis] - x.operator.stop)
        cut = [d for d in ends if isinstance(d, int) and 0 <= d <= MOST_CUT]
        if axis < 2 or len(cut) < len(ends):
            return None
        before[axis], behind[axis], x = before[axis] + cut[0], behind[axis] + cut[1], of
    if x is term or rank < 3:
        return None
    ones, channels = (1,) * (rank - 2), x.shape[1]
    places: Shape = tuple(a + b + 1 for a, b in zip(before[2:], behind[2:], strict=True))
    same = reshaped(make(Band(channels)), (channels, channels, *ones))
    weights = Pad((0, 0, *before[2:], 0, 0, *behind[2:]))(same)
    return Layer(Key(x, Conv(ones, (0,) * (2 * len(ones)), ones), places), weights, 0, merged=True)
