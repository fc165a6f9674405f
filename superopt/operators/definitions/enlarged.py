"""Convolutions of maps whose places are repeated, place by place of the small map: as decoders resize, then convolve.

Of `x[⌊p / f⌋]`, a kernel of k places meets ⌈(k - 1) / f⌉ + 1 of x at most: those of its elements that meet the same one
are added up before. So for each of f phases `y[f·t + a] = Σ_j x[t + j] · Σ_{⌊(a + i - b) / f⌋ = j} k[i]`, where b is
padded in front. To twice the size, by kernels of 3 by 3, that are four convolutions of 2 by 2: 16 products for 36.
"""

from __future__ import annotations

import itertools
import math
from functools import reduce
from typing import TypeAlias

from superopt.operators.conv import Conv
from superopt.operators.definitions.phases import side_by_side
from superopt.operators.layout import Concat, Expand, Reshape
from superopt.operators.meanings import defines
from superopt.operators.nodes import concrete
from superopt.operators.picks import Slice
from superopt.operators.pointwise import Add
from superopt.relations import are_equal, is_one
from superopt.term import Term, make

MOST = 16
"""Of more phases a runtime has more nodes to run than it saves."""

Both: TypeAlias = tuple[int, int]
"""Of rows and of columns."""


@defines("conv", "of repeated places", depth=3)
def of_repeated_places(conv: Conv, x: Term, k: Term) -> Term | None:
    """A convolution for each phase, of the map before its places were repeated."""
    return _by_phase(conv, x, k, None)


@defines("add", "of repeated places", depth=3)
def sum_of_repeated_places(op: Add, x: Term, y: Term) -> Term | None:
    """With a constant for each channel, which each phase has; None of any other sum."""
    y, x = (x, y) if isinstance(y.operator, Conv) else (y, x)
    conv, repeat = x.operator, y.operator
    if not isinstance(conv, Conv) or not isinstance(repeat, Expand) or repeat.axes != (1,) or not y.constant:
        return None
    image, kernel = x.inputs
    return _by_phase(conv, image, kernel, y.inputs[0])


def _by_phase(conv: Conv, x: Term, k: Term, bias: Term | None) -> Term | None:
    sizes = (*conv.strides, *conv.pads, *conv.dilations, conv.group, *k.shape)
    if x.type.rank != 4 or not k.constant or not all(isinstance(d, int) for d in sizes):
        return None
    before = _before(x)
    if before is None or (conv.strides, conv.dilations) != ((1, 1), (1, 1)):
        return None
    small, factors = before
    window, pads = concrete(k.shape[2:], "phases"), concrete(conv.pads, "phases")
    same = [
        f == 1 or (w > 1 and a + b == w - 1) for f, w, a, b in zip(factors, window, pads[:2], pads[2:], strict=True)
    ]
    if not all(same):
        return None
    parts = []
    for phases in itertools.product(*map(range, factors)):
        y = _of_phase(small, k, conv, factors, phases)
        parts.append(y if bias is None else Add()(y, Expand((1,), y.shape)(bias)))
    return side_by_side(reduce(lambda a, b: Concat(1)(a, b), parts), factors)


def _of_phase(small: Term, k: Term, conv: Conv, factors: Both, phases: tuple[int, ...]) -> Term:
    """What a convolution gives at each so many-th place, from these on: by sums of the elements of its kernel."""
    window, pads = concrete(k.shape[2:], "phases"), [*concrete(conv.pads, "phases")]
    for at, (phase, factor) in enumerate(zip(phases, factors, strict=True)):
        if factor > 1:
            met = [(phase + i - pads[at]) // factor for i in range(window[at])]
            k, pads[at], pads[at + 2] = _added_up(k, at + 2, met), -met[0], met[-1]
    return make(Conv((1, 1), tuple(pads), (1, 1), conv.group), (small, k))


def _added_up(k: Term, axis: int, met: list[int]) -> Term:
    """A kernel along an axis, those of its elements added up that meet the same place."""
    elements = [make(Slice(axis, i, i + 1), (k,)) for i in range(len(met))]
    sums = [
        reduce(lambda a, b: Add()(a, b), (e for e, place in zip(elements, met, strict=True) if place == own))
        for own in range(met[0], met[-1] + 1)
    ]
    return reduce(lambda a, b: Concat(axis)(a, b), sums)


def _before(x: Term) -> tuple[Term, Both] | None:
    """What pictures were before each of their places was repeated beside itself, and how often it is, by rows and
    columns; None of others, and where it is too often.
    """
    repeat = x.inputs[0] if isinstance(x.operator, Reshape) else x
    op = repeat.operator
    if repeat is x or not isinstance(op, Expand):
        return None
    small = repeat.inputs[0]
    # Sizes beside each other: of the axes that stay, and how often each element of the one before is repeated.
    counts: list[int] = []
    for axis, d in enumerate(op.to):
        if axis in op.axes:
            counts.append(1)
        elif not isinstance(d, int) or not counts:
            if not is_one(d):
                return None
        else:
            counts[-1] *= d
    if small.type.rank != 4 or len(counts) != 4 or counts[:2] != [1, 1] or not 1 < math.prod(counts) <= MOST:
        return None
    whole = all(are_equal(s * c, d) for s, c, d in zip(small.shape, counts, x.shape, strict=True))
    return (small, (counts[2], counts[3])) if whole else None
