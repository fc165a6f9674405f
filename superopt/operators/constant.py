"""What has no inputs: constants that rules and definitions make, folded to data at export; and ranges of integers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from superopt.arithmetic.carrier import Array, Carrier
from superopt.bounds import nonnegative
from superopt.demands import require
from superopt.dim import Dim, Shape, equal
from superopt.operators.attributes import attr
from superopt.operators.declare import operator
from superopt.operators.declared import Declared
from superopt.operators.layout import Expand
from superopt.operators.nodes import Emitter, NotUnderstood, Source, concrete
from superopt.term import Term, Type, make


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

    gives = frozenset({"nonnegative"})
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


@operator("count", onnx="Range")
class Count(Declared):
    """`y[i] = start + i`: integers, as many as a size says."""

    enumerated = False
    any_type = True
    n: Dim = attr(size=True, least=1)
    start: Dim = attr(default=0, size=True)

    def dtype(self, inputs: Sequence[Type]) -> str:
        """Integers of 64 bits."""
        return "int64"

    def shape(self) -> Shape:  # type: ignore[override]
        """A vector."""
        return (self.n,)

    def is_known(self, inputs: Sequence[Term]) -> bool:
        """Never: where its sizes are numbers, reading makes it data."""
        return False

    def eval(self, ring: Carrier) -> Array:  # type: ignore[override]
        """Their images in the carrier."""
        n, start = concrete((self.n, self.start), "count")
        return np.asarray([ring.constant(start + i) for i in range(n)], ring.dtype)

    def to_onnx(self, out: Emitter, *inputs: str) -> str:
        """From numbers, each a vector that is made one."""
        bounds = (self.start, self.start + self.n, 1)
        return out.node("Range", [out.node("Reshape", (out.integers((b,)), out.integers(()))) for b in bounds])

    @classmethod
    def from_onnx(cls, node: Source) -> Term:
        """Of 64-bit integers in steps of 1, where their number is known as a size."""
        bounds = [node.sizes(i) for i in range(3)]
        if any(b is None for b in bounds) or any(t is None or t.type.dtype != "int64" for t in node.inputs):
            raise NotUnderstood("the bounds are computed while the model runs, or no integers of 64 bits")
        (start,), (limit,), (step,) = (b for b in bounds if b is not None)
        if equal(step, 1) is not True or not nonnegative(limit - start - 1) or not nonnegative(start):
            raise NotUnderstood(f"a range from {start} to {limit} by {step}: steps of 1 upwards from 0 are declared")
        return make(cls(limit - start, start))


def matrix(rows: Sequence[Sequence[int]]) -> Term:
    """A matrix of integers."""
    return make(Matrix(len(rows[0]), tuple(entry for row in rows for entry in row)))


def filled(value: float, to: Shape) -> Term:
    """A number repeated over a shape."""
    number = make(Scalar(float(value)))
    return number if not to else make(Expand((), to), (number,))


def number_of(term: Term) -> float | None:
    """The number that a term repeats, as `filled` writes it; None of others."""
    scalar = (term.inputs[0] if isinstance(term.operator, Expand) else term).operator
    return scalar.value if isinstance(scalar, Scalar) else None
