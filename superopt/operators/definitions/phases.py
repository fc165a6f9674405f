"""Convolutions of few channels by phases: results of several places side by side, as channels of one place.

`y[o, p·s + a] = Σ x[c, p·s + a + i] · k[o,c,i]` is, for all a below s, a convolution in steps of s of s times as many
channels, each kernel moved by its phase a, with zeros around. That multiplies more. But onnxruntime computes channels
in blocks of 16 (8 without AVX-512), and where three come out, 13 are computed for nothing. On an AMD EPYC with AVX-512
onnxruntime 1.32 takes for 3 channels of 32 by kernels of 7 by 7 a quarter of the time, for 3 of 64 by 3 by 3 two
fifths, for 1 of 64 a fifth, for 8 of 16 by 3 by 39 a third.
"""

from __future__ import annotations

import itertools
import math
from functools import reduce

from superopt.dim import Shape
from superopt.operators.conv import Conv
from superopt.operators.definitions.blocks import LAID_OUT, with_zeros
from superopt.operators.layout import Concat, Transpose, reshaped
from superopt.operators.meanings import defines
from superopt.operators.nodes import concrete
from superopt.operators.picks import Slice
from superopt.operators.rows import Rows
from superopt.relations import are_equal
from superopt.term import Term, make

MOST = 4
"""So many phases along an axis at most: with longer steps more of the few places there are lie at the border."""

WORTH = 0.8
"""Where more than this of the time would be left it is not even offered: results have to be moved to their places."""

OPEN = 64
"""What a size that symbols leave open counts as where the form is chosen; the search times it at the sizes given."""

Steps = tuple[int, int]


@defines("conv", "by phases")
def by_phases(conv: Conv, x: Term, k: Term) -> Term | None:
    """Over pictures, by constant kernels of few channels at stride 1, in the steps that cost least."""
    plain = x.type.rank == 4 and (*conv.strides, *conv.dilations, conv.group) == (1, 1, 1, 1, 1) and k.constant
    if not plain or not all(isinstance(d, int) for d in (*k.shape, *conv.pads)):
        return None
    o, _, *window = concrete(k.shape, "phases")
    if o >= LAID_OUT or window == [1, 1]:
        return None
    sizes = tuple(d if isinstance(d, int) else OPEN for d in make(conv, (x, k)).shape[2:])
    counts = range(1, MOST + 1)
    costs = {steps: _cost(o, window, sizes, steps) for steps in itertools.product(counts, counts)}
    steps = min(costs, key=costs.__getitem__)
    return in_steps(conv, x, k, steps) if costs[steps] < WORTH * costs[1, 1] else None


def _cost(o: int, window: list[int], sizes: tuple[int, ...], steps: Steps) -> float:
    """What a channel that comes in takes, in products: each block more takes half as long as the first."""
    places = math.prod(-(-size // step) for size, step in zip(sizes, steps, strict=True))
    reach = math.prod(w + step - 1 for w, step in zip(window, steps, strict=True))
    return places * reach * (1 + -(-o * math.prod(steps) // LAID_OUT)) / 2


def in_steps(conv: Conv, x: Term, k: Term, steps: Steps) -> Term:
    """A convolution at stride 1, by the phases of so many rows and columns; what is too much at the end is cut off."""
    result = make(conv, (x, k)).shape
    pads = of_whole_steps(conv.pads, result, steps)
    y = side_by_side(make(Conv(steps, pads), (x, _moved(_moved(k, 3, steps[1]), 2, steps[0]))), steps)
    return within(y, result)


def of_whole_steps(pads: Shape, result: Shape, steps: Steps) -> Shape:
    """Pads with more at the end, for results in whole steps: where sizes are left open, as much as may be lacking."""
    lacking = (
        -size % step if isinstance(size, int) else step - 1 for size, step in zip(result[2:], steps, strict=True)
    )
    return (*pads[:2], *(pad + more for pad, more in zip(pads[2:], lacking, strict=True)))


def within(y: Term, shape: Shape, first: Steps = (0, 0)) -> Term:
    """Pictures cut to the rows and columns of a shape, from these on."""
    for axis, start in enumerate(first, start=2):
        y = y if are_equal(y.shape[axis], shape[axis]) else Slice(axis, start, start + shape[axis])(y)
    return y


def side_by_side(y: Term, steps: Steps) -> Term:
    """Channels (row, column, c) moved to the rows and columns of their places, by one axis and then the other."""
    n, channels, rows, columns = y.shape
    o = channels // math.prod(steps)
    if steps[1] > 1:
        y = Transpose((0, 2, 1))(reshaped(y, (n * steps[0], steps[1], o * rows * columns)))
        y = Rows()(y) if steps[0] > 1 else y
    if steps[0] > 1:
        y = Transpose((0, 2, 1, 3))(reshaped(y, (n, steps[0], o * rows, columns * steps[1])))
    return reshaped(y, (n, o, rows * steps[0], columns * steps[1]))


def _moved(k: Term, axis: int, steps: int) -> Term:
    """Kernels moved along an axis, by each phase, those of a phase together."""
    parts = [with_zeros(k, axis, steps - 1 - phase, phase) for phase in range(steps)]
    return reduce(lambda a, b: Concat(0)(a, b), parts)
