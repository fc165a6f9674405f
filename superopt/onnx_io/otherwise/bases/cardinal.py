"""B-splines over knots that are equally far apart, which are one spline, moved: by the distance to the middle of each.

`B(u) = 1/k! Σ (−1)ᵐ C(k+1, m) (c − m − |u|)₊ᵏ` with `c = (k + 1)/2` and all m below c: of a cubic one that is
`((2 − |u|)₊³ − 4 (1 − |u|)₊³) / 6` (Schoenberg 1946). Written from both ends no term is much larger than the spline, as
powers are that begin at one end, and a number that is in no cell is compared with no knot.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from superopt.arithmetic.carrier import Array
from superopt.onnx_io.new_nodes import NewNodes
from superopt.onnx_io.otherwise.bases.recursion import Spline
from superopt.onnx_io.otherwise.bases.waves import powers

HIGHEST, ROUNDED = 5, 2.0**-19
"""Of higher degrees terms cancel more. Knots may be off by such a part of their distance, as they are rounded: splines
are no more off then.
"""


class Cardinal(NamedTuple):
    """Splines of a degree: the middle of each, by rows and places, and how far knots are apart, by rows."""

    middles: Array
    distance: Array
    degree: int


def cardinal(spline: Spline) -> Cardinal | None:
    """Splines whose knots are equally far apart; None of others."""
    knots, degree = spline.knots, spline.degree
    count = knots.shape[1]
    if not 1 <= degree <= HIGHEST:
        return None
    distance = (knots[:, -1:] - knots[:, :1]) / (count - 1)
    even = knots[:, :1] + distance * np.arange(count)
    if not (np.abs(knots - even) <= ROUNDED * distance).all():
        return None
    low, high = (degree + 1) // 2, degree // 2 + 1  # the same of an odd degree, which has a knot in the middle
    many = count - degree - 1
    middles = (knots[:, low : low + many] + knots[:, high : high + many]) / 2
    is_same = bool((middles == middles[:1]).all() and (distance == distance[:1]).all())
    return Cardinal(middles[:1], distance[:1], degree) if is_same else Cardinal(middles, distance, degree)


def write(
    made: NewNodes, x: ir.Value, middles: ir.Value, steps: ir.Value | float, degree: int
) -> tuple[ir.Value, float]:
    """The splines of numbers, whose knots are some step apart, or each of another one; and what they are to be
    multiplied by: the first of the weights, which is the largest, so that the others are parts of one.

    Numbers are subtracted before anything is multiplied: that is exact where a knot is near.
    """
    far, step = made.node("Abs", [made.node("Sub", [x, middles])]), steps
    if isinstance(step, ir.Value):
        far, step = made.node("Div", [far, step]), 1.0
    half = (degree + 1) / 2
    ends = [half - m for m in range(degree // 2 + 1)]
    weights = [math.comb(degree + 1, m) * end**degree / math.factorial(degree) for m, end in enumerate(ends)]
    parts = [(weight / weights[0]) ** (1 / degree) for weight in weights]
    terms = [
        powers(made, _clipped(made, far, end * step, part), degree)[-1] for end, part in zip(ends, parts, strict=True)
    ]
    whole = terms[0]
    for m, term in enumerate(terms[1:], 1):
        whole = made.node("Sub" if m % 2 else "Add", [whole, term])
    return whole, weights[0]


def _clipped(made: NewNodes, far: ir.Value, end: float, largest: float) -> ir.Value:
    """What falls from `largest`, which is 1 at most, to 0 at the end, and is 0 from there on."""
    line = [ir.AttrFloat32("alpha", -largest / end), ir.AttrFloat32("beta", largest)]
    return made.node("HardSigmoid", [far], line)
