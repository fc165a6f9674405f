"""Products of two values that have some of a few axes each, summed along some: as an einsum says it by its letters.

Axes of the one value alone are rows, of the other columns, what is summed up is contracted, and what both have
otherwise is a stack of matrices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import product as choices
from typing import NamedTuple

from superopt.dim import Shape, product
from superopt.operators.layout import Expand, reshaped
from superopt.operators.matmul import MatMul
from superopt.operators.pointwise import Mul
from superopt.relations import are_equal, is_one
from superopt.search.rewriting.finders.turned import turned
from superopt.term import Term


class Factor(NamedTuple):
    """A value, and which axes of the products it has, in order; along all others it is the same."""

    x: Term
    axes: tuple[int, ...]


class Parts(NamedTuple):
    """Which axes are a stack of matrices, rows of the one, columns of the other, and contracted."""

    stack: tuple[int, ...]
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    inner: tuple[int, ...]


def parted(factors: Sequence[Factor], shape: Shape) -> Iterator[tuple[Factor, Factor]]:
    """All ways to part the factors of a product into two, of which the first has the first."""
    for sides in choices((True, False), repeat=len(factors) - 1):
        if not all(sides):
            one, other = (
                [f for f, own in zip(factors, (True, *sides), strict=True) if own is side] for side in (True, False)
            )
            yield joined(one, shape), joined(other, shape)


def joined(factors: Sequence[Factor], shape: Shape) -> Factor:
    """The product of some factors along the axes that these have."""
    axes = tuple(sorted({a for f in factors for a in f.axes}))
    to = tuple(shape[a] for a in axes)
    each = [f.x if f.axes == axes else Expand(tuple(map(axes.index, f.axes)), to)(f.x) for f in factors]
    return Factor(reduce(Mul(), each), axes)


def parts_of(one: Factor, other: Factor, summed: Sequence[int]) -> Parts:
    """What the axes of two values are, some of which are summed."""
    both = [a for a in one.axes if a in other.axes]
    rows, columns = ([a for a in f.axes if a not in both and a not in summed] for f in (one, other))
    inner = [a for a in both if a in summed]
    return Parts(tuple(a for a in both if a not in summed), tuple(rows), tuple(columns), tuple(inner))


def contracted(one: Factor, other: Factor, parts: Parts, shape: Shape) -> Term:
    """The product of matrices, along the axes that stay, in order."""

    def sizes(axes: Sequence[int]) -> Shape:
        return tuple(shape[a] for a in axes)

    stack, rows, columns, inner = parts
    left = reshaped(moved(one, (*stack, *rows, *inner)), (*sizes(stack), product(sizes(rows)), product(sizes(inner))))
    right = moved(other, (*stack, *inner, *columns))
    right = reshaped(right, (*sizes(stack), product(sizes(inner)), product(sizes(columns))))
    kept = (*stack, *rows, *columns)
    return moved(Factor(reshaped(MatMul()(left, right), sizes(kept)), kept), sorted(kept))


def moved(f: Factor, to: Sequence[int]) -> Term:
    """A value with its axes in an order."""
    return turned(f.x, list(map(f.axes.index, to)))


def unsqueezed(x: Term) -> list[int | None] | None:
    """Which axes of a reshape those of its input are, None for one of one place; None where it merges or splits any."""
    below = x.inputs[0].shape
    own, theirs = ([a for a, d in enumerate(shape) if not is_one(d)] for shape in (x.shape, below))
    if len(own) != len(theirs) or not all(are_equal(x.shape[a], below[b]) for a, b in zip(own, theirs, strict=True)):
        return None
    of = dict(zip(theirs, own, strict=True))
    return [of.get(b) for b in range(len(below))]
