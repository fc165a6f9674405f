"""Random numbers for what is only timed: drawing is slow beside copying, so few are drawn, and come again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

DRAWN = 2**16 + 1
"""How many numbers an array is made of, over and over: no processor foretells what so many ask of it. Odd, so that rows
differ, and channels do.
"""


def normal(rng: np.random.Generator, shape: Sequence[int], scale: float = 1.0) -> NDArray[Any]:
    """Normal numbers of this standard deviation, of 32 bits."""
    numbers = rng.standard_normal(min(math.prod(shape), DRAWN), np.float32)
    return np.resize(numbers * np.float32(scale), shape)
