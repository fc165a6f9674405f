"""Convolutions of channels that are all alike: of one of them, by the sum of what each is multiplied by.

Partial convolutions (Liu et al. 2018) carry a mask beside the picture, repeat it for all channels, and add up by a
kernel of ones how much of each window is known: `Σ_c k[o,c]·m = (Σ_c k[o,c])·m`. What is joined of several maps, as
decoders join an earlier one, is taken part by part.
"""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

from superopt.operators.constant import filled
from superopt.operators.conv import Conv
from superopt.operators.layout import Concat, Expand, reshaped
from superopt.operators.meanings import defines
from superopt.operators.nodes import concrete
from superopt.operators.picks import Slice
from superopt.operators.pointwise import Mul
from superopt.operators.reductions import Sum
from superopt.relations import is_one
from superopt.term import Term, make

CHANNELS = 1
"""The axis of channels in a map, and of those that come in in a kernel."""


class Part(NamedTuple):
    """Channels of a map, and what these are multiplied by; `alike` where they are one that was repeated."""

    x: Term
    kernel: Term
    alike: bool


@defines("conv", "of channels alike", depth=3)
def of_channels_alike(conv: Conv, x: Term, k: Term) -> Term | None:
    """Each part of which all channels are alike as one channel; None where there is none."""
    if conv.group != 1 or not k.constant:
        return None
    parts = [Part(of, kernel, _is_alike(of)) for of, kernel in _parts(x, k)]
    if not any(part.alike for part in parts):
        return None
    maps = [_one_channel(p.x) if p.alike else p.x for p in parts]
    kernels = [_added_up(p.kernel) if p.alike else p.kernel for p in parts]
    join = Concat(CHANNELS)
    return make(conv, (reduce(join, maps), reduce(join, kernels)))


def _parts(x: Term, k: Term) -> list[tuple[Term, Term]]:
    """What a map is joined of along its channels, and what of the kernel each meets."""
    if x.operator != Concat(CHANNELS):
        return [(x, k)]
    first, second = x.inputs
    middle, end = first.shape[CHANNELS], x.shape[CHANNELS]
    return [(first, Slice(CHANNELS, 0, middle)(k)), (second, Slice(CHANNELS, middle, end)(k))]


def _is_alike(x: Term) -> bool:
    return isinstance(x.operator, Expand) and CHANNELS not in x.operator.axes and not is_one(x.shape[CHANNELS])


def _one_channel(x: Term) -> Term:
    """One of channels that are alike."""
    repeat, (of,) = x.operator, x.inputs
    assert isinstance(repeat, Expand)
    to = (*x.shape[:CHANNELS], 1, *x.shape[CHANNELS + 1 :])
    whole = all(a in repeat.axes or is_one(d) for a, d in enumerate(to))
    return reshaped(of, to) if whole else Expand(repeat.axes, to)(of)


def _added_up(k: Term) -> Term:
    """A kernel for one channel that comes in, of one for several; of rows that are repeated as their repetition."""
    to, repeat = (*k.shape[:CHANNELS], 1, *k.shape[CHANNELS + 1 :]), k.operator
    if not isinstance(repeat, Expand):
        return reshaped(Sum((CHANNELS,))(k), to)
    (of,) = k.inputs
    if CHANNELS not in repeat.axes:
        (count,) = concrete(k.shape[CHANNELS : CHANNELS + 1], "channels alike")
        return Expand(repeat.axes, to)(Mul()(of, filled(float(count), of.shape)))
    axis = repeat.axes.index(CHANNELS)
    return Expand(tuple(a for a in repeat.axes if a != CHANNELS), to)(Sum((axis,))(of))
