"""Large arrays laid in files while models are compared: five outputs of three runs may take more than the models do."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from superopt.arithmetic.carrier import Array

LEAST_BYTES = 2**20
"""Smaller arrays stay in memory."""

_NUMBERS = "biufc"
"""The kinds of elements that are laid: truth values and numbers, of numpy's own types."""


@dataclass(frozen=True)
class Laid:
    """An array in a file, which is there as long as the folder that it was laid in."""

    path: Path
    dtype: np.dtype[np.generic]
    shape: tuple[int, ...]


Value: TypeAlias = "Array | Laid"


def laid(array: Array, folder: Path) -> Value:
    """An array laid in a folder, where it is large, of numbers, and there is room for it; else the array itself."""
    if array.nbytes < LEAST_BYTES or array.dtype.kind not in _NUMBERS or 0 in array.strides:
        return array  # what only repeats takes less than it seems
    path = folder / secrets.token_hex(8)
    try:
        array.tofile(path)
    except OSError:
        path.unlink(missing_ok=True)
        return array
    return Laid(path, array.dtype, array.shape)


def all_laid(arrays: Sequence[Array], folder: Path) -> list[Value]:
    """Each of some arrays, laid."""
    return [laid(array, folder) for array in arrays]


def taken(value: Value) -> Array:
    """An array, read where it lies in a file."""
    return np.fromfile(value.path, value.dtype).reshape(value.shape) if isinstance(value, Laid) else value
