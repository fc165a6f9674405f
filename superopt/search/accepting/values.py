"""What the values of one output tell: its numbers, how far rounding takes them, which stay, and which are the same."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import EllipsisType
from typing import Any

import numpy as np
from numpy.lib.recfunctions import structured_to_unstructured

from superopt.arithmetic.carrier import Array
from superopt.search.accepting.bounds import MOST_NOISE, MOST_SAME_NOISE, NOISE_FACTOR, SAME_FACTOR
from superopt.search.accepting.distance import relative_error, same_special


def numbers_of(value: Array) -> Array:
    """The numbers of an array whose elements are maps, with an axis of keys; any other array itself."""
    return structured_to_unstructured(value) if value.dtype.names else value


def is_finite(value: Array) -> bool:
    """Whether an output has no number that is none, or infinite."""
    numbers = numbers_of(value)
    return numbers.dtype.kind != "f" or bool(np.isfinite(numbers).all())


def rounded_to(expected: Array) -> np.dtype[Any]:
    """The type that an output of a model of 16 bits has its numbers from: those of 32 may all be of 16, as where a cast
    stands behind them. Whole numbers tell nothing, as those of either are.
    """
    numbers = numbers_of(expected)
    if numbers.dtype != np.float32 or np.array_equal(np.rint(numbers), numbers, equal_nan=True):
        return numbers.dtype
    with np.errstate(over="ignore"):
        halves = numbers.astype(np.float16)
    is_of_16 = np.array_equal(halves.astype(numbers.dtype), numbers, equal_nan=True)
    return halves.dtype if is_of_16 else numbers.dtype


def as_overflowed(found: Array, expected: Array) -> Array:
    """What was found, with what is not finite in the original as it is there."""
    if found.shape != expected.shape or found.dtype != expected.dtype or found.dtype.kind != "f":
        return found
    return np.where(np.isfinite(expected), found, expected)


def noise_in(noisy: Sequence[Array], expected: Array) -> float:
    """How far rounding alone takes an output of floating-point numbers; 0 for others, and of another shape."""
    expected = numbers_of(expected)
    if not np.issubdtype(expected.dtype, np.floating):
        return 0.0
    others = [n for n in map(numbers_of, noisy) if n.shape == expected.shape]
    return max((relative_error(n, expected) for n in others), default=0.0)


def steady_in(jolted: Sequence[Array], expected: Array) -> Array | EllipsisType:
    """Which elements of an output of floating-point numbers change by little: all, where nothing is known of it."""
    others = [j for j in map(numbers_of, jolted) if j.shape == expected.shape]
    if not others or not np.issubdtype(expected.dtype, np.floating):
        return ...
    finite = np.isfinite(expected)
    most = MOST_NOISE * float(np.abs(expected[finite]).max(initial=0.0))
    with np.errstate(invalid="ignore", over="ignore"):
        steady: Array = np.logical_and.reduce([np.abs(other - expected) <= most for other in others])
    return steady | ~finite


def the_same(ours: Sequence[Array], wanted: Array, noisy: Sequence[Array], noise: float) -> Array | None:
    """What a candidate gives to the last bit as the original, where neither is optimized by the runtime, or where both
    are, if in the other case it gives about what the original does in one of these; None where that is not so.
    """
    if len(ours) < 2 or SAME_FACTOR * noise >= 1.0 or any(_off(one, wanted) > SAME_FACTOR * noise for one in ours):
        return None
    if noise <= MOST_SAME_NOISE and np.array_equal(ours[0], wanted, equal_nan=True):
        return ours[0]
    optimized = any(np.array_equal(ours[1], numbers_of(value), equal_nan=True) for value in noisy)
    return ours[1] if optimized else None


def is_astray(ours: Sequence[Array], wanted: Array, noise: float) -> bool:
    """Whether a candidate is farther off than noise takes the original, and than it may be off where that tells."""
    return any(_off(one, wanted) > max(SAME_FACTOR * noise, NOISE_FACTOR * MOST_NOISE) for one in ours)


def _off(found: Array, wanted: Array) -> float:
    return relative_error(found, wanted) if same_special(found, wanted) else math.inf
