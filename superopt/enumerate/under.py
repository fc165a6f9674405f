"""The operators under terms: for each a row of numbers, filled up with −1."""

from __future__ import annotations

import numpy as np

from superopt.arithmetic.carrier import Array


def united(one: Array, other: Array) -> Array:
    """The operators under two terms each, those of the first and then those that only the second has."""
    found = one.copy()
    fresh = (other >= 0) & ~(other[:, :, None] == found[:, None, :]).any(axis=2)
    place = (found >= 0).sum(axis=1)
    for k in range(found.shape[1]):
        rows = np.flatnonzero(fresh[:, k])
        found[rows, place[rows]] = other[rows, k]
        place[rows] += 1
    return found


def shared(one: Array, other: Array) -> Array:
    """How many operators stand under both of two terms each."""
    return np.asarray(((one[:, :, None] == other[:, None, :]) & (one[:, :, None] >= 0)).sum(axis=(1, 2)))
