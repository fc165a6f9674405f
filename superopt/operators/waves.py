"""Waves over numbers, which Fourier transforms are products with."""

from __future__ import annotations

import math

import numpy as np

from superopt.arithmetic.carrier import Array, Carrier
from superopt.demands import require
from superopt.dim import Dim, Shape
from superopt.operators.attributes import attr
from superopt.operators.declare import operator
from superopt.operators.declared import Declared
from superopt.operators.nodes import concrete


@operator("waves")
class Waves(Declared):
    """`y[i, 2k] = cos(2π ik/n)`, `y[i, 2k+1] = −sin(2π ik/n)`: k waves over n numbers. Of numbers in `parts`, real and
    imaginary, row 2i is that of the real one, and row 2i + 1 that of the imaginary one, which is turned by a quarter.
    Turned `back` the sines are of the other sign, and all is divided by n.
    """

    enumerated = False
    needs = frozenset({"div"})
    n: Dim = attr(size=True, least=1)
    to: Dim = attr(size=True, least=1)
    parts: int = attr(default=1)
    back: int = attr(default=0)

    def shape(self) -> Shape:  # type: ignore[override]
        """A row for each number or part, two columns for each wave."""
        require(self.parts in (1, 2), f"waves: numbers are of one part or of two, not of {self.parts}")
        return (self.n * self.parts, self.to * 2)

    def eval(self, ring: Carrier) -> Array:  # type: ignore[override]
        """Their images in the carrier."""
        n, to = concrete((self.n, self.to), "waves")
        turns = np.outer(np.arange(n), np.arange(to)) % n
        scale = 1.0 / n if self.back else 1.0
        cosines, sines = (
            np.asarray([ring.constant(scale * _sine(4 * m + shift, 4 * n)) for m in range(n)], ring.dtype)[turns]
            for shift in (n, 0)
        )
        sines = sines if self.back else ring.mul(sines, ring.constant(-1.0))
        rows = [(cosines, sines), (ring.mul(sines, ring.constant(-1.0)), cosines)][: self.parts]
        found = np.stack([np.stack(row, axis=-1) for row in rows], axis=1)
        return np.asarray(found.reshape(n * self.parts, to * 2), ring.dtype)


def _sine(m: int, n: int) -> float:
    """`sin(2π m/n)`, exact at each quarter."""
    quarters, rest = divmod(4 * m, n)
    return float((0, 1, 0, -1)[quarters % 4]) if not rest else math.sin(2 * math.pi * m / n)
