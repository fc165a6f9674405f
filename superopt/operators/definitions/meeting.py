"""Convolutions of small maps by the taps of their kernels that meet any of these: the others see zeros alone.

Kernels dilated by as much as a map is long (the last branch of a pyramid, Chen et al. 2017: 36 apart where maps are 28,
18 where they are 14), and those of 3 by 3 on what was pooled to a single place, as the last heads of SSD (Liu et al.
2016) are. onnxruntime 1.32 reads no such zeros, but looks for each tap and place whether there is anything: for 512
channels of 28 by 28, 36 apart, it takes 31 ms, and 3.4 where only the middle is left.
"""

from __future__ import annotations

from typing import NamedTuple

from superopt.operators.conv import Conv
from superopt.operators.meanings import defines
from superopt.operators.nodes import concrete
from superopt.operators.picks import Slice
from superopt.term import Term, make


class _Axis(NamedTuple):
    """An axis of a convolution: how long the map is, how many results there are, and how windows lie."""

    size: int
    results: int
    taps: int
    step: int
    gap: int
    before: int
    after: int

    def meeting(self) -> range:
        """From the first tap to the last that meets the map, with those before that no padding is there for."""
        met = [i for i in range(self.taps) if self._meets(self.before - i * self.gap)]
        if not met:
            return range(self.taps)
        first, last = met[0], met[-1]
        return range(min(first, self.before // self.gap), max(last, self.taps - 1 - self.after // self.gap) + 1)

    def _meets(self, first: int) -> bool:
        """Whether some of the places `t·step - first` lie within the map."""
        return max(-(-first // self.step), 0) <= min((self.size - 1 + first) // self.step, self.results - 1)


@defines("conv", "of taps that meet")
def of_taps_that_meet(conv: Conv, x: Term, k: Term) -> Term | None:
    """By a kernel without the first and last taps that see nothing but the zeros around, whatever the place."""
    is_padded = any(not isinstance(pad, int) or pad != 0 for pad in conv.pads)  # what is not has taps that all meet
    sizes = (*x.shape[2:], *k.shape[2:], *conv.sizes())
    if not is_padded or not k.constant or not all(isinstance(d, int) for d in sizes):
        return None
    if all(map(_all_meet, *(concrete(c, "taps") for c in (x.shape[2:], k.shape[2:], conv.strides, conv.dilations)))):
        return None
    axes = _axes(conv, x, k)
    if any(axis.before < 0 or axis.after < 0 or not axis.results for axis in axes):
        return None
    met = [axis.meeting() for axis in axes]
    if all(len(taps) == axis.taps for taps, axis in zip(met, axes, strict=True)):
        return None
    for at, taps in enumerate(met, start=2):
        k = k if len(taps) == k.shape[at] else Slice(at, taps.start, taps.stop)(k)
    before = tuple(axis.before - taps.start * axis.gap for taps, axis in zip(met, axes, strict=True))
    after = tuple(axis.after - (axis.taps - taps.stop) * axis.gap for taps, axis in zip(met, axes, strict=True))
    gaps = tuple(axis.gap if len(taps) > 1 else 1 for taps, axis in zip(met, axes, strict=True))
    return make(Conv(conv.strides, (*before, *after), gaps, conv.group), (x, k))


def _all_meet(size: int, taps: int, step: int, gap: int) -> bool:
    """Whether a map is so long that each tap meets it somewhere, however it is padded: that is told in no time."""
    return size > (taps - 1) * gap + step


def _axes(conv: Conv, x: Term, k: Term) -> list[_Axis]:
    results = make(conv, (x, k)).shape[2:]
    count = len(results)
    columns = (x.shape[2:], results, k.shape[2:], conv.strides, conv.dilations, conv.pads[:count], conv.pads[count:])
    return [_Axis(*axis) for axis in zip(*(concrete(column, "taps") for column in columns), strict=True)]
