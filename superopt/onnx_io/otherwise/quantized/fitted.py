"""Functions of bytes that are lines with ends: which one gives the same of each byte."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from superopt.arithmetic.carrier import Array

TURNED, TRIED, CLEAR = 0.002, 81, 2**-9
"""The slope is changed by such a part at most, in so many ways, and what is rounded is so far from the middle: more
than what 32-bit numbers round below 2⁸.
"""

LARGEST = 2**10
"""No slope and no number that is added has more steps."""


class Line(NamedTuple):
    """How many steps go up by a byte, and how many are added; what is lower or higher than the ends is these."""

    slope: float
    added: float
    low: int
    high: int


def fitted(each: Array, numbers: Array, wanted: Array, zero: int, ends: tuple[int, int]) -> Line | None:
    """The line that gives the same as is wanted of each byte, none of which is near the middle between two steps.

    `each` counts from the byte of 0, `numbers` are steps before they are rounded, and `zero` is the byte of 0 among
    those that are wanted, all of which lie between two `ends`. None where there is no such line.
    """
    low, high = int(wanted.min()), int(wanted.max())
    inner = np.flatnonzero((wanted > low) & (wanted < high))
    if inner.size < 2:
        return None
    first, last = inner[0], inner[-1]
    slope = float(numbers[last] - numbers[first]) / float(each[last] - each[first])
    best, found = CLEAR, None
    for turned in np.linspace(1 - TURNED, 1 + TURNED, TRIED) * slope:
        rest = wanted - turned * each
        least, most = rest[wanted > low].max() - 0.5, rest[wanted < high].min() + 0.5
        if (most - least) / 2 > best:
            best, found = (most - least) / 2, Line(float(turned), float(least + most) / 2 - zero, low, high)
    is_small = found is not None and 0 < found.slope < LARGEST and abs(found.added) < LARGEST
    return _as_far_as_it_goes(found, each, wanted, zero, ends) if found is not None and is_small else None


def _as_far_as_it_goes(line: Line, each: Array, wanted: Array, zero: int, ends: tuple[int, int]) -> Line:
    """The line without ends of its own where it ends by itself."""
    values = line.slope * each + line.added + zero
    goes_below = (values[wanted == line.low] < line.low - 0.5 + CLEAR).any()
    goes_beyond = (values[wanted == line.high] > line.high + 0.5 - CLEAR).any()
    low, high = (line.low if goes_below else ends[0], line.high if goes_beyond else ends[1])
    return line._replace(low=low, high=high)
