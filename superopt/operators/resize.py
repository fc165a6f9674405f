"""Images made larger or smaller: to the nearest element, as moves; and linearly between neighbours."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from superopt.arithmetic.carrier import Array, Carrier
from superopt.bounds import nonnegative
from superopt.demands import require
from superopt.dim import Dim, Shape, equal, product
from superopt.operators.attributes import attr
from superopt.operators.declare import operator, reads
from superopt.operators.declared import Declared
from superopt.operators.element_types import ONNX_TYPES
from superopt.operators.layout import positive_axis, spread
from superopt.operators.nodes import Emitter, NotUnderstood, Source, concrete, pass_over
from superopt.operators.picks import Take
from superopt.operators.rearrange import repeated
from superopt.relations import are_equal, equal_shapes, is_one
from superopt.term import Term, make

PLACES = ("half_pixel", "align_corners", "asymmetric")
"""Where elements lie: at the centres of equal parts, from end to end, or at the starts of equal parts."""


@operator("interpolate", onnx="Resize")
class Interpolate(Declared):
    """`y[n,c,p,q] = Σ_ij a[p,i] · b[q,j] · x[n,c,i,j]`, where a row of a or b weighs the two neighbours of a place."""

    needs = frozenset({"div"})
    linear = (0,)
    zero = True
    named_axes = "n c (h) (w) -> n c (h) (w)"
    laws = """
    (law interpolate-shift (given (?x n c h w) (?y c))
      (= (interpolate (i j) (add ?x (expand (1) ?y))) (add (interpolate (i j) ?x) (expand (1) ?y))))
    (law interpolate-shift (given (?x n c h w) (?y c))
      (= (interpolate (i j) :by asymmetric (add ?x (expand (1) ?y)))
         (add (interpolate (i j) :by asymmetric ?x) (expand (1) ?y))))
    (law interpolate-shift (given (?x n c h w) (?y c))
      (= (interpolate (i j) :by align_corners (add ?x (expand (1) ?y)))
         (add (interpolate (i j) :by align_corners ?x) (expand (1) ?y))))
    (law interpolate-conv-point (given (?x n c h w) (?k o d 1 1))
      (= (interpolate (i j) (conv :group g ?x ?k)) (conv :group g (interpolate (i j) ?x) ?k)))
    (law interpolate-conv-point (given (?x n c h w) (?k o d 1 1))
      (= (interpolate (i j) :by asymmetric (conv :group g ?x ?k))
         (conv :group g (interpolate (i j) :by asymmetric ?x) ?k)))
    (law interpolate-conv-point (given (?x n c h w) (?k o d 1 1))
      (= (interpolate (i j) :by align_corners (conv :group g ?x ?k))
         (conv :group g (interpolate (i j) :by align_corners ?x) ?k)))
    """
    to: Shape = attr(size=True, least=1, sample=[(10, 12)])
    by: str = attr(default="half_pixel")

    def shape(self, x: Shape) -> Shape:  # type: ignore[override]
        """The sizes asked for, of one or more axes after the channels."""
        return demand_maps("interpolate", x, self.to, self.by)

    def eval(self, ring: Carrier, x: Array) -> Array:  # type: ignore[override]
        """One axis after the other, each element between its two neighbours."""
        for axis, size in enumerate(concrete(self.to, "interpolate"), 2):
            if size != x.shape[axis]:
                x = self._along(ring, x, axis, size)
        return x

    def _along(self, ring: Carrier, x: Array, axis: int, size: int) -> Array:
        places = [_place(p, x.shape[axis], size, self.by) for p in range(size)]
        low = [int(p) for p in places]
        high = [min(i + 1, x.shape[axis] - 1) for i in low]
        shape = [size if a == axis else 1 for a in range(x.ndim)]
        parts = []
        for at, share in (
            (low, [1 - p + i for p, i in zip(places, low, strict=True)]),
            (high, [p - i for p, i in zip(places, low, strict=True)]),
        ):
            tops, bottoms = ([int(v) for v in vs] for vs in zip(*(s.as_integer_ratio() for s in share), strict=True))
            weight = ring.div(ring.constant(1) * np.asarray(tops), ring.constant(1) * np.asarray(bottoms))
            parts.append(ring.mul(np.take(x, at, axis), weight.reshape(shape)))
        return ring.add(*parts)

    def flops(self, result: Shape, *shapes: Shape) -> Dim:
        """A multiplication and an addition for each of the neighbours, two along each axis."""
        return product(result) * (2 << len(self.to))

    def to_onnx(self, out: Emitter, *inputs: str) -> str:
        """Since opset 11; the sizes of sample and channels as they are."""
        if out.opset < 11:
            raise NotUnderstood("Resize takes sizes since opset 11")
        (x,) = inputs
        to = (*out.shape(x)[:2], *self.to)
        return resized(out, x, to, {"mode": "linear", "coordinate_transformation_mode": self.by})


def resized(out: Emitter, x: str, to: Shape, given: Mapping[str, Any]) -> str:
    """A Resize to sizes, since opset 11; by factors where sizes are symbols and factors are not: to sizes that are
    computed while the model runs, runtimes do not resize in the layout that convolutions have.
    """
    symbolic = not all(isinstance(d, int) for d in to)
    factors = [_factor(size, d) for size, d in zip(out.shape(x), to, strict=True)]
    if symbolic and out.opset >= 12 and None not in factors:
        by = out.node("Constant", (), {"value_floats": factors})
        return out.node("Resize", (x, _nothing(out), by), given)
    return to_sizes(out, x, to, given)


def to_sizes(out: Emitter, x: str, to: Shape, given: Mapping[str, Any]) -> str:
    """A Resize to sizes, since opset 11."""
    nothing = _nothing(out)
    return out.node("Resize", (x, nothing, nothing, out.integers(to)), given)


def _nothing(out: Emitter) -> str:
    """What is left out, which before opset 13 had to be there, and empty."""
    return "" if out.opset >= 13 else out.node("Cast", (out.integers(()),), {"to": ONNX_TYPES["float32"]})


def _factor(size: Dim, to: Dim) -> float | None:
    """How many times as large a size becomes, where that is a number which 32 bits hold exactly."""
    whole = to // size
    if isinstance(whole, int) and are_equal(whole * size, to):
        return float(whole)
    if isinstance(size, int) and isinstance(to, int) and Fraction(to, size).denominator.bit_count() == 1:
        return to / size
    return None


def demand_maps(name: str, x: Shape, to: Shape, by: str) -> Shape:
    """The shape of resized maps, whose sample and channels stay. Raises `ShapeError` where there is none."""
    require(len(x) == 2 + len(to) >= 3, f"{name}: {x} has not two axes more than {to}")
    require(by in PLACES, f"{name}: elements lie {' or '.join(PLACES)}, not {by}")
    return (*x[:2], *to)


def position(p: int, size: int, to: int, by: str) -> Fraction:
    """Where element `p` of `to` falls among `size`, or beyond their ends."""
    if by == "align_corners":
        return Fraction(p * (size - 1), to - 1) if to > 1 else Fraction(0)
    half = Fraction(1, 2) if by == "half_pixel" else Fraction(0)
    return (p + half) * Fraction(size, to) - half


def _place(p: int, size: int, to: int, by: str) -> Fraction:
    """The same, held within them."""
    return min(max(position(p, size, to, by), Fraction(0)), Fraction(size - 1))


@reads("Resize", "Upsample")
def resize(node: Source) -> Term:
    """To the nearest, as elements repeated or taken; or linearly, along the axes after sample and channels."""
    x, given = node.inputs[0], node.attributes
    assert x is not None
    pass_over(node, "extrapolation_value")  # of another mode
    if given.get("antialias", 0):
        raise NotUnderstood("resize with antialiasing")
    if given.get("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise NotUnderstood("resize that keeps the aspect ratio")
    if given.get("exclude_outside", 0) and given.get("mode") != "cubic":
        raise NotUnderstood("resize in which elements beyond the ends do not count")
    mode, old = given.get("mode", "nearest"), node.op_type == "Upsample" or node.opset < 11
    by = given.get("coordinate_transformation_mode", "asymmetric" if old else "half_pixel")
    to = _sizes(node, x, old)
    if old and (mode == "linear" or any(not nonnegative(d - s) for d, s in zip(to, x.shape, strict=True))):
        raise NotUnderstood("resize before opset 11, linearly or to fewer elements")
    if by == "half_pixel_symmetric":
        by = "half_pixel"  # they differ where sizes are no whole numbers
    if by == "pytorch_half_pixel" and not any(map(_may_become_one, x.shape, to)):
        by = "half_pixel"
    if by not in PLACES or mode not in _MAPS:
        raise NotUnderstood(f"resize by {mode}, {by}")
    if all(map(is_one, x.shape[2:])) and equal_shapes(x.shape[:2], to[:2]):
        pass_over(node, "nearest_mode")
        pass_over(node, "cubic_coeff_a")
        return spread(x, to)  # between a place and itself
    told = node.has_to_be(to)
    if mode == "nearest":
        pass_over(node, "cubic_coeff_a")
        rounding = given.get("nearest_mode", "floor" if old else "round_prefer_floor")
        counts = _counts(x, to, by, rounding)
        if counts is not None and equal_shapes(told, to):
            return repeated(x, counts, within=True)
        moved = _nearest(x, to, by, rounding) if counts is None else None
        if moved is not None:
            return moved
        mode = mode if counts is None else "repeated"
    pass_over(node, "nearest_mode")
    if len(to) < 3 or any(equal(a, b) is not True for a, b in zip(x.shape[:2], to[:2], strict=True)):
        raise NotUnderstood(f"{mode} resize of {x.shape} to {to}: sample and channels stay")
    return _MAPS[mode](node, x, told[2:], by)


def _linear(node: Source, x: Term, to: Shape, by: str) -> Term:
    pass_over(node, "cubic_coeff_a")
    return make(Interpolate(to, by), (x,))


_MAPS: dict[str, Callable[[Source, Term, Shape, str], Term]] = {"linear": _linear}
"""How maps are resized by weights of neighbours, and to the nearest where sizes are symbols, by mode; `repeated` is
the latter by whole factors, to sizes that are not said so.
"""


def resizes(mode: str) -> Callable[[Callable[[Source, Term, Shape, str], Term]], None]:
    """Enter a function as what reads a mode: of a node, its input, sizes after the channels, and where elements lie."""

    def enter(read: Callable[[Source, Term, Shape, str], Term]) -> None:
        _MAPS[mode] = read

    return enter


def _may_become_one(size: Dim, to: Dim) -> bool:
    return equal(size, to) is not True and not nonnegative(to - 2)


def _sizes(node: Source, x: Term, old: bool) -> Shape:
    """The shape of the result. Raises `NotUnderstood` where factors do not give it exactly."""
    at = 1 if old else 2
    scales = node.attributes.get("scales") if len(node.inputs) < 2 else None
    if scales is None and len(node.inputs) > at and node.inputs[at] is not None:
        scales = node.constant(at)
    if scales is None or not len(scales):
        sizes = node.sizes(3) if len(node.inputs) > 3 else None
        if sizes is None:
            raise NotUnderstood("the factors are computed while the model runs")
        return _at(node, x, sizes)
    factors = _at(node, x, [np.float32(s) for s in scales])
    return tuple(_scaled(d, s) if isinstance(s, np.float32) else s for d, s in zip(x.shape, factors, strict=True))


def _at(node: Source, x: Term, given: Sequence[Any]) -> tuple[Any, ...]:
    """What is given for the listed axes, or for all; the other axes keep their sizes."""
    axes = node.attributes.get("axes")
    listed = range(x.type.rank) if axes is None else [positive_axis(int(a), x.type.rank) for a in axes]
    found = dict(zip(listed, given, strict=True))
    return tuple(found.get(axis, d) for axis, d in enumerate(x.shape))


def _scaled(size: Dim, factor: np.float32) -> Dim:
    if factor >= 1 and factor == int(factor):
        return size * int(factor)
    (whole,) = concrete((size,), "resize by a fraction")
    to = int(np.floor(np.float32(whole) * factor))
    # The runtime computes places with the factor, we with the quotient of the sizes.
    if np.float32(to / whole) != factor:
        raise NotUnderstood(f"resize of {whole} elements by {factor}, to {to}")
    return to


def _counts(x: Term, to: Shape, by: str, rounding: str) -> tuple[int, ...] | None:
    """How often each element is repeated along each axis, where factors are whole and that is what is nearest."""
    factors = [d // s for d, s in zip(to, x.shape, strict=True)]
    whole = all(isinstance(f, int) and are_equal(f * s, d) for f, s, d in zip(factors, x.shape, to, strict=True))
    if not whole or (by, rounding) not in _REPEATS:
        return None
    counts = concrete(tuple(factors), "resize")
    return counts if max(counts) <= _REPEATS[by, rounding] else None


def _nearest(x: Term, to: Shape, by: str, rounding: str) -> Term | None:
    """Those that are nearest taken along each axis; None where sizes are no numbers."""
    for axis, both in enumerate(zip(x.shape, to, strict=True)):
        if equal(*both) is not True:
            size, wanted = both
            if not isinstance(size, int) or not isinstance(wanted, int):
                return None
            exact = by == "align_corners" or Fraction(wanted, size).denominator.bit_count() == 1
            places = [position(p, size, wanted, by) for p in range(wanted)]
            x = make(Take(axis, tuple(_rounded(p, size, rounding, exact or p == 0) for p in places)), (x,))
    return x


_REPEATS = {
    ("half_pixel", "round_prefer_floor"): 2**31,
    ("asymmetric", "floor"): 2**31,
    ("asymmetric", "round_prefer_floor"): 2,
}
"""Up to which whole factor the nearest elements are each one so many times, by how places are computed and rounded."""

_ROUNDED: dict[str, Callable[[Fraction], int]] = {
    "floor": math.floor,
    "ceil": math.ceil,
    "round_prefer_floor": lambda p: math.ceil(p - Fraction(1, 2)),
    "round_prefer_ceil": lambda p: math.floor(p + Fraction(1, 2)),
}


def _rounded(place: Fraction, size: int, rounding: str, exact: bool) -> int:
    """The nearest of so many elements. Raises `NotUnderstood` where rounding to 32 bits would decide which it is."""
    if rounding not in _ROUNDED:
        raise NotUnderstood(f"resize to the nearest by {rounding}")
    little = (abs(place) + 1) / 2**16
    lower, own, upper = (min(max(_ROUNDED[rounding](place + d), 0), size - 1) for d in (-little, Fraction(0), little))
    if lower != upper and not exact:
        raise NotUnderstood(f"resize to the nearest where rounding decides between {(lower, upper)}")
    return own
