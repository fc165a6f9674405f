"""Signals made longer linearly by a whole factor, phase by phase: as vocoders and forecasts bring frames to samples.

Between two elements lie as many as the factor says, and each is a sum of three neighbours by weights that are the same
everywhere: so all are one product of rows of three with one matrix. onnxruntime 1.32 makes 60 signals of 400 elements
160 times as long in 10 ms, and in 0.7 so. What is infinite spreads to its neighbours.
"""

from __future__ import annotations

from functools import reduce

from superopt.dim import floor_div
from superopt.operators.constant import filled, matrix
from superopt.operators.interpolate import Interpolate
from superopt.operators.layout import Concat, Expand, Transpose, reshaped
from superopt.operators.matmul import MatMul
from superopt.operators.meanings import defines
from superopt.operators.picks import Slice
from superopt.operators.pointwise import Div
from superopt.relations import are_equal, is_one
from superopt.term import Term

TURNED = (0, 2, 1)
"""Channels behind, or in front again."""


@defines("interpolate", "by phases", rounds=True)
def by_phases(op: Interpolate, x: Term) -> Term | None:
    """Signals of channels made so many times as long; None of pictures, and of what becomes shorter."""
    factor = _factor(op, x)
    if factor is None:
        return None
    near = reduce(Concat(3), (reshaped(n, (*x.shape, 1)) for n in _neighbours(x, 2)))
    weights = Expand((2, 3), (*x.shape[:2], 3, factor))(_weights(op.by, factor))
    return reshaped(MatMul()(near, weights), (*x.shape[:2], *op.to))


@defines("transpose", "of signals by phases", depth=3, rounds=True)
def turned_by_phases(op: Transpose, y: Term) -> Term | None:
    """The same with channels behind, where they were behind before."""
    resize = y.operator
    if op.perm != TURNED or not isinstance(resize, Interpolate) or not isinstance(y.inputs[0].operator, Transpose):
        return None
    (turned,) = y.inputs
    factor = _factor(resize, turned)
    if factor is None or turned.operator != op:
        return None
    (x,) = turned.inputs
    count, places, channels = x.shape
    near = reduce(Concat(2), (reshaped(n, (count, places, 1, channels)) for n in _neighbours(x, 1)))
    columns = Transpose((1, 0))(_weights(resize.by, factor))
    weights = Expand((2, 3), (count, places, factor, 3))(columns)
    return reshaped(MatMul()(weights, near), (count, *resize.to, channels))


def _factor(op: Interpolate, x: Term) -> int | None:
    """How many times as long signals become, where that is a whole number and they have neighbours."""
    if x.type.rank != 3 or op.by not in ("half_pixel", "asymmetric"):
        return None
    (places,), (to,) = x.shape[2:], op.to
    if is_one(places):
        return None
    factor = floor_div(to, places)
    return factor if isinstance(factor, int) and factor > 1 and are_equal(factor * places, to) else None


def _neighbours(x: Term, axis: int) -> tuple[Term, Term, Term]:
    """Of each place along an axis the one before, itself and the one behind; at the ends these themselves."""
    last = x.shape[axis] - 1
    before = Concat(axis)(Slice(axis, 0, 1)(x), Slice(axis, 0, last)(x))
    behind = Concat(axis)(Slice(axis, 1, last + 1)(x), Slice(axis, last, last + 1)(x))
    return before, x, behind


def _weights(by: str, factor: int) -> Term:
    """How much of the three neighbours each of the elements is, (3, factor)."""
    whole = 2 * factor
    away = [2 * phase + (1 - factor if by == "half_pixel" else 0) for phase in range(factor)]
    rows = [[max(-d, 0) for d in away], [whole - abs(d) for d in away], [max(d, 0) for d in away]]
    return Div()(matrix(rows), filled(float(whole), (3, factor)))
