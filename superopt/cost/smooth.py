"""Random images whose neighbours are alike, as those of photographs are.

How long some kernels take depends on what they compute with: those that ask of each element whether it is positive, as
onnxruntime's for PRelu and Where do, take 4.2 ns an element of white noise, where no processor foretells the answers,
2.5 of such images, and 0.5 where all answers are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from superopt.drawn import normal

SIDES = (1, 2, 4, 8, 16, 32)
"""Of as much power each, noise of squares of these sides, each twice the one before, has that of natural images: one
over the square of the frequency (Field 1987).
"""

_LEAST_RANK = 4
_CHANNELS = 4
"""A last axis of up to so many places holds channels, and the two before it the places of an image."""


def smooth(rng: np.random.Generator, shape: Sequence[int]) -> NDArray[Any]:
    """Normal numbers of variance 1, alike where places of an image are near; below four axes they are not."""
    if len(shape) < _LEAST_RANK:
        return normal(rng, shape)
    last = len(shape) - (2 if shape[-1] <= _CHANNELS else 1)
    coarsest, *others = (
        normal(rng, [-(-n // side) if axis in (last - 1, last) else n for axis, n in enumerate(shape)])
        for side in reversed(SIDES)
    )
    total = coarsest
    for finer in others:
        total = _twice(_twice(total, finer, last - 1), finer, last)
        total += finer
    total *= len(SIDES) ** -0.5
    return total


def _twice(coarse: NDArray[Any], finer: NDArray[Any], axis: int) -> NDArray[Any]:
    """Each place twice along an axis, as many as a finer one has."""
    return coarse.take(np.arange(finer.shape[axis]) // 2, axis)
