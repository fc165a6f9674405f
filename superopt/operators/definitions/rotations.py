"""Rotations by tables, as exporters write them, where what is turned and the tables have whole rows.

Each table says the same of both halves of a row: it was made of half of one, joined with itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import NamedTuple, TypeAlias

from superopt.dim import Shape, symbol
from superopt.operators.along import read_along, widened
from superopt.operators.attention.rotary import Rotary, turned
from superopt.operators.declared import Declared
from superopt.operators.layout import Concat, Expand, Reshape, reshaped
from superopt.operators.meanings import defines
from superopt.operators.pointwise import Add, Mul
from superopt.operators.rearrange import Gather
from superopt.relations import divides, is_one
from superopt.term import Term, make, variable

FAR = 9
"""How many operators below each other are looked at: tables are scaled, cast, repeated, and get axes, each in turn."""

Halves: TypeAlias = "Callable[[Term, int], Term | None]"
"""Of a variable the half that stands twice along an axis, if one does."""


class Rotation(NamedTuple):
    """`x · cos + turned(x) · sin`, by tables of the shape of x."""

    x: Term
    cos: Term
    sin: Term


def rotation(x: Term, y: Term) -> Rotation | None:
    """What the sum of two terms turns, and by which tables, in whatever order these are multiplied and added."""
    if not (isinstance(x.operator, Mul) and isinstance(y.operator, Mul)) or x.type.rank != 4:
        return None
    if divides(2, x.shape[3]) is not True:
        return None
    for straight, across in ((x, y), (y, x)):
        for (own, cos), (quarter, sin) in product(_both_ways(straight), _both_ways(across)):
            joined = quarter.operator
            if isinstance(joined, Concat) and joined.axis == 3 and quarter is turned(own):
                return Rotation(own, cos, sin)
    return None


def first_half(term: Term, axis: int, of_variable: Halves = lambda _, __: None) -> Term | None:
    """What stands twice along an axis of a term, after what its operators do; None where they do not say so."""
    op = term.operator
    if term.is_variable:
        return of_variable(term, axis)
    if isinstance(op, Concat) and op.axis == axis:
        first, second = term.inputs
        return first if first is second else None
    if isinstance(op, Gather):
        x, indices = term.inputs
        below = axis + 1 - indices.type.rank
        half = first_half(x, below, of_variable) if below > op.axis else None
        return None if half is None else make(op, (half, indices))
    read = read_along(term, axis)
    if read is None or not isinstance(op, Declared):
        return None
    halves = [i if a is None else first_half(i, a, of_variable) for i, a in zip(term.inputs, read, strict=True)]
    inputs = [half for half in halves if half is not None]
    if len(inputs) < len(halves) or divides(2, term.shape[axis]) is not True:
        return None
    return make(widened(op, axis, term.shape[axis] // 2), inputs)


_ROWS = [variable(name, [symbol(size) for size in "bhrw"]) for name in "xcys"]
_PRODUCTS = [Mul()(*_ROWS[:2]), Mul()(*_ROWS[2:])]


@defines("add", "as rotary", FAR, Add()(*_PRODUCTS))
def as_rotary(op: Add, x: Term, y: Term) -> Term | None:
    """Rows turned by half of each table, where its halves are equal and all heads are turned alike."""
    found = rotation(x, y)
    if found is None or found.x.type.dtype == "float64":  # of which ONNX has no rotary embeddings
        return None
    tables = [_of_all_heads(half) for t in found[1:] if (half := first_half(t, 3)) is not None]
    own = [t for t in tables if t is not None]
    return make(Rotary(), (found.x, *own)) if len(own) == 2 else None


def _both_ways(factors: Term) -> Iterator[tuple[Term, Term]]:
    first, second = factors.inputs
    yield first, second
    yield second, first


def _of_all_heads(table: Term) -> Term | None:
    """A table over `batch heads rows width`, that is the same for all heads, over the others."""
    op, (batch, heads, *row) = table.operator, table.shape
    to = (batch, *row)
    if is_one(heads):
        return _viewed(table, to)
    if not isinstance(op, Expand) or 1 in op.axes:
        return None
    (below,) = table.inputs
    axes = tuple(a - (a > 1) for a in op.axes)
    repeated = any(not is_one(d) for a, d in enumerate(to) if a not in axes)
    return Expand(axes, to)(below) if repeated else _viewed(below, to)


def _viewed(x: Term, to: Shape) -> Term:
    """A value under another shape, whatever other shapes it had."""
    while isinstance(x.operator, Reshape):
        (x,) = x.inputs
    return reshaped(x, to)
