"""Large arrays laid in files while models are compared: five outputs of three runs may take more than the models do."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from superopt.arithmetic import Array

LEAST_BYTES = 2**20
"""Smaller arrays stay in memory."""


@dataclass(frozen=True)
class Laid:
    """An array in a file, which is there as long as the folder that it was laid in."""

    path: Path


Value: TypeAlias = "Array | Laid"


def laid(arrays: Sequence[Array], folder: Path) -> list[Value]:
    """The arrays, the large ones laid in a folder; where there is no room in that, they stay."""
    return [_laid(array, folder) for array in arrays]


def _laid(array: Array, folder: Path) -> Value:
    if array.nbytes < LEAST_BYTES or array.dtype.hasobject:
        return array
    path = folder / f"{secrets.token_hex(8)}.npy"
    with suppress(OSError):
        np.save(path, array, allow_pickle=False)
        return Laid(path)
    with suppress(OSError):
        path.unlink(missing_ok=True)
    return array


def taken(value: Value) -> Array:
    """An array, read if it lies in a file."""
    return np.load(value.path, allow_pickle=False) if isinstance(value, Laid) else value
