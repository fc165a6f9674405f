"""Views of what a layer makes of the rows at many places: whose weights may be viewed alike, without these places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from superopt.dim import Dim, Shape, product
from superopt.operators.layout import Expand, Reshape, Transpose, reshaped
from superopt.operators.matmul import MatMul
from superopt.operators.normalize import Gemm
from superopt.operators.picks import Slice, Take
from superopt.operators.pointwise import Add, Div, Mul
from superopt.relations import are_equal, is_one
from superopt.search.rewriting.finders.gathered import product_of
from superopt.search.rewriting.finders.grouped import is_number
from superopt.term import Term, make

MOST = 16
"""Operators between a view and its layer, at most."""


class Part(NamedTuple):
    """A part of an axis: of places, of which it is the axis of this number, or of channels."""

    size: Dim
    place: int | None = None


Parts = tuple[Part, ...]


class Layered(NamedTuple):
    """A view of what a layer makes of rows, (places.., channels). Its weights are viewed alike, with one place for all
    and with an axis more, of the channels of the rows, behind the others; its bias, if there is one, without that.
    """

    rows: Term
    weights: Term
    bias: Term | None
    axes: tuple[Parts, ...]
    """What each axis of the view is made of, without axes of one element."""


def layered(x: Term, depth: int = MOST) -> Layered | None:
    """What a term views; None where that is no layer, or where it takes places apart."""
    op = x.operator
    if (found := _layer(x)) is not None:
        return found
    if not depth or x.constant or not isinstance(op, Transpose | Reshape | Mul | Div | Slice | Take):
        return None
    below = layered(x.inputs[0], depth - 1)
    if below is None or (isinstance(op, Mul | Div) and not (x.inputs[1].constant and is_number(x.inputs[1]))):
        return None
    axes: Sequence[Parts] | None = below.axes
    if isinstance(op, Slice | Take):
        if places_of(below.axes[op.axis]):
            return None
        size = x.shape[op.axis]
        axes = (*below.axes[: op.axis], () if is_one(size) else (Part(size),), *below.axes[op.axis + 1 :])
    elif isinstance(op, Transpose):
        axes = [below.axes[a] for a in op.perm]
    elif isinstance(op, Reshape):
        axes = _regrouped([part for parts in below.axes for part in parts], x.shape)
    return None if axes is None else _viewed(below, x, tuple(axes))


def places_of(parts: Sequence[Part]) -> list[int]:
    """Which axes of places some parts of axes are."""
    return [part.place for part in parts if part.place is not None]


def channels_of(parts: Sequence[Part]) -> Dim:
    """How many channels an axis has for each place."""
    return product([part.size for part in parts if part.place is None])


def _regrouped(parts: list[Part], to: Shape) -> list[Parts] | None:
    """Axes of these sizes, of the same parts in order; None where places would be taken apart."""
    axes: list[Parts] = []
    for size in to:
        axis: list[Part] = []
        left = size
        while not is_one(left):
            if not parts:
                return None
            part = parts.pop(0)
            if are_equal(part.size, left):
                left = 1
            elif not isinstance(part.size, int) or not isinstance(left, int):
                return None
            elif left % part.size == 0:
                left //= part.size
            elif part.place is None and part.size % left == 0:
                parts.insert(0, Part(part.size // left))
                part, left = Part(left), 1
            else:
                return None
            axis.append(part)
        axes.append(tuple(axis))
    return axes


def _layer(x: Term) -> Layered | None:
    """What a layer makes, as it stands."""
    op = x.operator
    if isinstance(op, Gemm):
        return _layer(op.definition(*x.inputs))
    if isinstance(op, Add):
        for of, bias in (x.inputs, x.inputs[::-1]):
            repeat = bias.operator
            if bias.constant and isinstance(repeat, Expand) and repeat.axes == (x.type.rank - 1,):
                found = _layer(of)
                return found and _with_bias(found, reshaped(bias.inputs[0], (*_ones(x), x.shape[-1])))
        return None
    whole = product_of(x) if isinstance(op, MatMul) and x.inputs[1].constant else None
    if whole is None or not all(isinstance(d, int) for d in whole.weights.shape):
        return None
    places = [a for a, d in enumerate(x.shape[:-1]) if not is_one(d)]
    rows = reshaped(whole.x, (*(x.shape[a] for a in places), whole.x.shape[-1]))
    weights = reshaped(Transpose((1, 0))(whole.weights), (*_ones(x), *whole.weights.shape[::-1]))
    axes = [(Part(d, places.index(a)),) if a in places else () for a, d in enumerate(x.shape[:-1])]
    return Layered(rows, weights, None, (*axes, (Part(x.shape[-1]),)))


def _with_bias(found: Layered, bias: Term) -> Layered:
    """The same with a bias more: what has one already may have another one added."""
    return found._replace(bias=bias if found.bias is None else Add()(found.bias, bias))


def _ones(x: Term) -> Shape:
    return (1,) * (x.type.rank - 1)


def _viewed(below: Layered, x: Term, axes: tuple[Parts, ...]) -> Layered:
    """A view whose axes are those now, with weights and bias viewed as it is."""
    op = x.operator

    def alike(of: Term, more: int) -> Term:
        if isinstance(op, Reshape):
            return reshaped(of, (*map(channels_of, axes), *of.shape[of.type.rank - more :]))
        if isinstance(op, Transpose):
            return Transpose((*op.perm, *range(len(op.perm), len(op.perm) + more)))(of)
        return make(op, (of, *(Expand((), of.shape)(other.inputs[0]) for other in x.inputs[1:])))

    bias = None if below.bias is None else alike(below.bias, 0)
    return Layered(below.rows, alike(below.weights, 1), bias, axes)
