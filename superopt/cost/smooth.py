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

SIDES = (1, 2, 4, 8, 16, 32)
"""Of as much power each, noise of squares of these sides has that of natural images: one over the square of the
frequency (Field 1987).
"""

_LEAST_RANK = 4
_CHANNELS = 4
"""A last axis of up to so many places holds channels, and the two before it the places of an image."""


def smooth(rng: np.random.Generator, shape: Sequence[int]) -> NDArray[Any]:
    """Normal numbers of variance 1, alike where places of an image are near; below four axes they are independent."""
    if len(shape) < _LEAST_RANK:
        return rng.standard_normal(shape)
    last = len(shape) - (2 if shape[-1] <= _CHANNELS else 1)
    total = np.zeros(shape, np.float32)
    for side in SIDES:
        coarse = [-(-size // side) if axis in (last - 1, last) else size for axis, size in enumerate(shape)]
        noise = rng.standard_normal(coarse, np.float32)
        for axis in (last - 1, last):
            noise = np.repeat(noise, side, axis).take(range(shape[axis]), axis)
        total += noise
    return np.asarray(total * len(SIDES) ** -0.5)
