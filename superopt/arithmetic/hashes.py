"""Keyed hashes, in place of the functions that a carrier cannot express."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np

from superopt.arithmetic.carrier import Array, Function

_MIX = np.uint64(0x9E3779B97F4A7C15)


def keyed_hash(key: str, *arrays: Array) -> Array:
    """63-bit hashes of the elements of arrays that broadcast, different for each key and each argument position."""
    state = np.asarray(np.uint64(zlib.crc32(key.encode())))
    with np.errstate(over="ignore"):  # the products are meant to wrap
        for array in arrays:
            state = (state ^ array.astype(np.int64).view(np.uint64)) * _MIX + np.uint64(1)
            state = (state ^ state >> np.uint64(29)) * np.uint64(0xBF58476D1CE4E5B9)
            state = state ^ state >> np.uint64(32)
    return np.asarray(state >> np.uint64(1)).astype(np.int64)


def hashed(function: Function, arrays: Sequence[Array]) -> Array:
    """A keyed hash in place of a function, which has of it that it keeps zeros, and that arguments may be swapped."""
    given = np.sort(np.stack(arrays), axis=0) if function.commutative else arrays
    return keyed_hash(function.name, *given)


def keep_zero(function: Function, arrays: Sequence[Array], values: Array) -> Array:
    """Values in place of a function's, with zeros where it keeps them."""
    zeros = np.all([a == 0 for a in arrays], axis=0) if function.zero else False
    return np.where(zeros, 0, values)
