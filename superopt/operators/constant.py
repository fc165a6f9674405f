"""Constants that rules and definitions make: they have no inputs, and are folded to data at export."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from superopt.arithmetic import Array, Carrier
from superopt.dim import Dim, Shape, require
from superopt.operators.declare import Declared, attr, concrete, operator
from superopt.operators.layout import Expand
from superopt.term import Term, make


@operator("scalar")
class Scalar(Declared):
    """`y = value`, of rank 0."""

    enumerated = False
    value: float = attr()

    def shape(self) -> Shape:  # type: ignore[override]
        """No axes."""
        return ()

    def eval(self, ring: Carrier) -> Array:  # type: ignore[override]
        """The number's image in the carrier."""
        return ring.constant(self.value)


@operator("band")
class Band(Declared):
    """`y[i,j] = 1 where −below ≤ j − i ≤ above, else 0`: a square matrix; the identity for 0 and 0."""

    enumerated = False
    n: Dim = attr(size=True, least=1)
    below: Dim = attr(default=0, size=True)
    above: Dim = attr(default=0, size=True)

    def shape(self) -> Shape:  # type: ignore[override]
        """Square."""
        return (self.n, self.n)

    def eval(self, ring: Carrier) -> Array:  # type: ignore[override]
        """Ones along the band."""
        n, below, above = concrete((self.n, self.below, self.above), "band")
        offsets = np.subtract.outer(np.arange(n), np.arange(n)).T
        return ((offsets >= -below) & (offsets <= above)).astype(ring.dtype)


@operator("matrix")
class Matrix(Declared):
    """`y[i,j] = entries[i·columns + j]`: integers."""

    enumerated = False
    columns: int = attr()
    entries: tuple[int, ...] = attr()

    def shape(self) -> Shape:  # type: ignore[override]
        """As many rows as the entries fill."""
        count = len(self.entries)
        filled_up = self.columns > 0 and count > 0 and count % self.columns == 0
        require(filled_up, f"matrix: {count} entries do not fill rows of {self.columns}")
        return (count // self.columns, self.columns)

    def eval(self, ring: Carrier) -> Array:  # type: ignore[override]
        """The integers' images in the carrier."""
        images = [ring.constant(entry) for entry in self.entries]
        return np.asarray(images, dtype=ring.dtype).reshape(-1, self.columns)


def matrix(rows: Sequence[Sequence[int]]) -> Term:
    """A matrix of integers."""
    return make(Matrix(len(rows[0]), tuple(entry for row in rows for entry in row)))


def filled(value: float, to: Shape) -> Term:
    """A number repeated over a shape."""
    number = make(Scalar(float(value)))
    return number if not to else make(Expand((), to), (number,))
