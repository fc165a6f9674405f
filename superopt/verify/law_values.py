"""Random values for the variables of a law."""

from __future__ import annotations

from math import prod

import numpy as np

from superopt.arithmetic.carrier import Array, Carrier
from superopt.operators.laws.collected import Law
from superopt.term import Term, variables


class Values:
    """Random elements of a carrier, of which a law's facts hold; in every other evaluation some of them are 0."""

    def __init__(self, law: Law, ring: Carrier, rng: np.random.Generator) -> None:
        self.ring, self.rng = ring, rng
        self.kinds = {v: {f.kind for f in law.facts if f.of is v} for v in variables(law.left, law.right)}
        self.drawn, self.used, self.zeros = self._more(0), 0, True

    def next(self) -> None:
        """Another evaluation."""
        self.zeros = not self.zeros

    def of(self, v: Term, shape: tuple[int, ...]) -> Array:
        """Values for a variable: elements that were not given out yet."""
        count = prod(shape)
        if self.used + count > len(self.drawn):
            self.drawn, self.used = self._more(count), 0
        values = self.drawn[self.used : self.used + count].reshape(shape)
        self.used += count
        if "nonnegative" in self.kinds[v]:
            values = np.abs(values)
        if self.zeros and "nonzero" not in self.kinds[v]:
            values = np.where(self.rng.random(shape) < 0.25, 0, values)
        return values

    def _more(self, least: int) -> Array:
        return self.ring.sample((max(least, 2**14),), self.rng)
