"""Images resampled by products: along each axis the places of a result are weighted sums of elements.

Most weights are 0. Runtimes multiply matrices so much faster than they walk from place to place that this does not
matter: onnxruntime 1.32 enlarges 64 maps of 32 by 32 twice by cubic weights in 16 ms, and by two products in 0.1.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from superopt.arithmetic.carrier import Array, Carrier
from superopt.demands import require
from superopt.dim import Dim, Shape, product
from superopt.operators.attributes import attr
from superopt.operators.composite import Composite
from superopt.operators.declare import operator
from superopt.operators.declared import Declared
from superopt.operators.interpolate import Interpolate
from superopt.operators.layout import Expand, Transpose, reshaped
from superopt.operators.matmul import MatMul
from superopt.operators.meanings import defines
from superopt.operators.nodes import Emitter, NotUnderstood, Source, concrete
from superopt.operators.places import PLACES, demand_maps, position
from superopt.operators.resize import resize, resizes
from superopt.operators.resize_nodes import resized, to_sizes
from superopt.relations import are_equal
from superopt.term import Term, make

LARGEST = 2**22
"""So many weights along an axis are kept at most."""

_REACH = 2
"""How many neighbours on each side count for a cubic."""


@operator("weighing")
class Weighing(Declared):
    """`y[p,i]`: how much element i of n counts at place p of `to`; by two neighbours, or by four (Keys 1981).

    The cubic's coefficient is `a`, 0 for none; with `within` elements beyond the ends do not count, and otherwise those
    at the ends count for them.
    """

    enumerated = False
    to: Dim = attr(size=True, least=1)
    n: Dim = attr(size=True, least=1)
    by: str = attr(default="half_pixel")
    a: float = attr(default=0.0)
    within: int = attr(default=0)

    def shape(self) -> Shape:  # type: ignore[override]
        """A row for each place."""
        require(self.by in PLACES, f"weighing: elements lie {' or '.join(PLACES)}, not {self.by}")
        return (self.to, self.n)

    def eval(self, ring: Carrier) -> Array:  # type: ignore[override]
        """The weights' images in the carrier."""
        to, n = concrete((self.to, self.n), "weighing")
        found = np.full((to, n), ring.constant(0), ring.dtype)
        for p in range(to):
            for i, weight in self._weights(position(p, n, to, self.by), n).items():
                top, bottom = (np.asarray(ring.constant(v), ring.dtype) for v in weight.as_integer_ratio())
                found[p, i] = ring.div(top, bottom)
        return found

    def to_onnx(self, out: Emitter, *inputs: str) -> str:
        """Of sizes that are symbols: the identity, resized along its first axis. Those of numbers are data."""
        if out.opset < 11 or out.dtype != "float32":
            raise NotUnderstood(f"weights of open sizes are resized in 32 bits, since opset 11; not in {out.dtype}")
        square = out.node("ConstantOfShape", (out.integers((self.n, self.n)),))
        identity = out.node("EyeLike", (square,))
        return to_sizes(out, identity, (self.to, self.n), _mode(self.by, self.a, self.within))

    def _weights(self, place: Fraction, n: int) -> dict[int, Fraction]:
        """By element, those of a place."""
        if not self.a:
            place = min(max(place, Fraction(0)), Fraction(n - 1))
            low = math.floor(place)
            return {low: 1 - place + low, min(low + 1, n - 1): place - low} if place > low else {low: Fraction(1)}
        low, found = math.floor(place), dict[int, Fraction]()
        for i in range(low - _REACH + 1, low + _REACH + 1):
            at = min(max(i, 0), n - 1)
            if not self.within or at == i:
                found[at] = found.get(at, Fraction(0)) + _cubic(abs(place - i), Fraction(self.a))
        total = sum(found.values())
        return {i: weight / total for i, weight in found.items()}


def _mode(by: str, a: float, within: int) -> dict[str, Any]:
    """The attributes of a Resize that weighs so."""
    weighed = {"mode": "cubic", "cubic_coeff_a": a, "exclude_outside": within} if a else {"mode": "linear"}
    return {**weighed, "coordinate_transformation_mode": by}


def _cubic(t: Fraction, a: Fraction) -> Fraction:
    """How much an element counts at a distance (Keys, Cubic convolution interpolation, 1981, equation 15)."""
    if t <= 1:
        return (a + 2) * t**3 - (a + 3) * t**2 + 1
    return a * t**3 - 5 * a * t**2 + 8 * a * t - 4 * a if t < _REACH else Fraction(0)


@operator("cubic", onnx="Resize")
class Cubic(Composite):
    """`y[n,c,p,q] = Σ_ij a[p,i] · b[q,j] · x[n,c,i,j]`, where a row of a or b weighs the four neighbours of a place."""

    needs = frozenset({"div"})
    linear = (0,)
    zero = True
    named_axes = "n c (h) (w) -> n c (h) (w)"
    to: Shape = attr(size=True, least=1, sample=[(10, 12)])
    by: str = attr(default="half_pixel")
    a: float = attr(default=-0.75)
    within: int = attr(default=0)

    def shape(self, x: Shape) -> Shape:  # type: ignore[override]
        """The sizes asked for, of two axes after the channels."""
        require(len(x) == 4, f"cubic: {x} has not four axes")
        require(self.a != 0, "cubic: a coefficient of 0 is not declared")
        return demand_maps("cubic", x, self.to, self.by)

    def eval(self, ring: Carrier, x: Array) -> Array:  # type: ignore[override]
        """The value of the definition."""
        return super().eval(ring, x)

    def definition(self, *inputs: Term) -> Term | None:
        """Products along each axis."""
        (x,) = inputs
        return _by_products(x, self.to, self.by, self.a, self.within)

    def flops(self, result: Shape, *shapes: Shape) -> Dim:
        """A multiplication and an addition for each of 4 × 4 neighbours."""
        return product(result) * 32

    def to_onnx(self, out: Emitter, *inputs: str) -> str:
        """Since opset 11; the sizes of sample and channels as they are."""
        if out.opset < 11:
            raise NotUnderstood("Resize takes sizes since opset 11")
        (x,) = inputs
        return resized(out, x, (*out.shape(x)[:2], *self.to), _mode(self.by, self.a, self.within))

    @classmethod
    def from_onnx(cls, node: Source) -> Term:
        """Of whichever mode it is."""
        return resize(node)


@resizes("cubic")
def _cubic_of(node: Source, x: Term, to: Shape, by: str) -> Term:
    if x.type.rank != 4:
        raise NotUnderstood(f"cubic resize of {x.shape}: four axes are declared")
    a, within = float(node.attributes.get("cubic_coeff_a", -0.75)), int(node.attributes.get("exclude_outside", 0))
    if not a:
        raise NotUnderstood("cubic resize with a coefficient of 0")  # by which linear weights are told here
    return make(Cubic(to, by, a, within), (x,))


@defines("interpolate", "by products", rounds=True)
def interpolate_by_products(op: Interpolate, x: Term) -> Term | None:
    """Linearly, likewise, unless weights would be too many."""
    sizes = [(n, to) for n, to in zip(x.shape[2:], op.to, strict=True) if isinstance(n, int) and isinstance(to, int)]
    return _by_products(x, op.to, op.by) if all(n * to <= LARGEST for n, to in sizes) else None


def _by_products(x: Term, to: Shape, by: str, a: float = 0.0, within: int = 0) -> Term:
    """One axis after the other, the last first."""
    for axis in reversed(range(2, x.type.rank)):
        if not are_equal(x.shape[axis], to[axis - 2]):
            x = _along(x, axis, make(Weighing(to[axis - 2], x.shape[axis], by, a, within)))
    return x


def _along(x: Term, axis: int, weights: Term) -> Term:
    """Each place along an axis the sum of its elements by weights."""
    to, size = weights.shape
    if axis == x.type.rank - 1:
        return MatMul()(x, Expand((axis - 1, axis), (*x.shape[:-2], size, to))(Transpose((1, 0))(weights)))
    before, after = x.shape[:axis], x.shape[axis + 1 :]
    rows = reshaped(x, (*before, size, product(after)))
    products = MatMul()(Expand((axis, axis + 1), (*before, to, size))(weights), rows)
    return reshaped(products, (*before, to, *after))
