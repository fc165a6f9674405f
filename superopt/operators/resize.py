"""Resize as it is read: to the nearest as moves of elements, otherwise by what enters itself for a mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from superopt.bounds import nonnegative
from superopt.dim import Dim, Shape, equal
from superopt.operators.declare import reads
from superopt.operators.interpolate import Interpolate
from superopt.operators.layout import positive_axis, spread
from superopt.operators.nodes import NotUnderstood, Source, concrete, pass_over
from superopt.operators.picks import Take
from superopt.operators.places import PLACES, nearest_of, position
from superopt.operators.rearrange import repeated
from superopt.relations import are_equal, equal_shapes, is_one
from superopt.term import Term, make


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
            x = make(Take(axis, tuple(nearest_of(p, size, rounding, exact or p == 0) for p in places)), (x,))
    return x


_REPEATS = {
    ("half_pixel", "round_prefer_floor"): 2**31,
    ("asymmetric", "floor"): 2**31,
    ("asymmetric", "round_prefer_floor"): 2,
}
"""Up to which whole factor the nearest elements are each one so many times, by how places are computed and rounded."""
