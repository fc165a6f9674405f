"""Numbers by key, sorted, so that many are looked up at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from superopt.arithmetic.carrier import Array


@dataclass(frozen=True)
class Keyed:
    """Keys of 64 bits in rising order, and the number that each stands for."""

    keys: Array
    numbers: Array

    def __len__(self) -> int:
        return len(self.keys)

    @classmethod
    def none(cls) -> Keyed:
        """Without any."""
        return cls(np.empty(0, np.uint64), np.empty(0, np.int32))

    def with_more(self, keys: Array, numbers: Array) -> Keyed:
        """Others beside them; of equal keys the earlier is found."""
        keys, numbers = np.concatenate([self.keys, keys]), np.concatenate([self.numbers, numbers])
        order = np.argsort(keys, kind="stable")
        return Keyed(keys[order], numbers[order])

    def found(self, wanted: Array) -> Array:
        """The numbers of keys; −1 for those that have none."""
        place = np.minimum(np.searchsorted(self.keys, wanted), len(self) - 1)
        return np.where(self.keys[place] == wanted, self.numbers[place], -1)
