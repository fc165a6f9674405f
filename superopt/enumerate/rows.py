"""Applications to terms of a table, in columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from superopt.arithmetic.carrier import Array


@dataclass
class Rows:
    """Applications to terms, in columns; `right` is −1 for those of one input, `app` −1 for what is none."""

    app: Array
    left: Array
    right: Array

    def __len__(self) -> int:
        return len(self.app)

    @classmethod
    def none(cls, count: int) -> Rows:
        """So many that are none."""
        return cls(np.full(count, -1), np.zeros(count, np.int64), np.full(count, -1))

    def put(self, places: Array, rows: Rows) -> None:
        """Others in place of some."""
        self.app[places], self.left[places], self.right[places] = rows.app, rows.left, rows.right

    def at(self, rows: Array) -> Rows:
        """Some of them."""
        return Rows(self.app[rows], self.left[rows], self.right[rows])

    def keys(self) -> Array:
        """A number for each that no other has."""
        parts = [x.astype(np.uint64) for x in (self.app, self.left + 1, self.right + 1)]
        return np.asarray(parts[0] << np.uint64(48) | parts[1] << np.uint64(24) | parts[2])
