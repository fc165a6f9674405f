"""Views of what a layer makes of rows: whose weights may be viewed alike, in place of these rows."""

from __future__ import annotations

from typing import NamedTuple

from superopt.dim import Dim, Shape, product
from superopt.operators.layout import Expand, Reshape, Transpose, reshaped
from superopt.operators.matmul import MatMul
from superopt.operators.normalize import Gemm
from superopt.operators.picks import Slice, Take
from superopt.operators.pointwise import Add, Div, Mul
from superopt.relations import are_equal, is_one
from superopt.search.rewriting.finders.gathered import product_of
from superopt.term import Term, make

MOST = 12
"""Operators between a view and its layer, at most."""


class Layered(NamedTuple):
    """A view of what a layer makes of rows (batches.., rows, channels). Its weights, and its bias if there is one, are
    viewed alike: the axis of the rows has the channels there, or one place, and axes of batches have one.
    """

    rows: Term
    weights: Term
    bias: Term | None
    row: int
    batch: tuple[int, ...]
    """Which axes of the view are those of the rows, and of batches in order."""

    @property
    def batches(self) -> Shape:
        """How many there are of each."""
        return self.rows.shape[:-2]


def layered(x: Term, depth: int = MOST) -> Layered | None:
    """What a term views; None where that is no layer, or rows do not stay an axis by themselves."""
    op = x.operator
    if (found := _layer(x)) is not None:
        return found
    if not depth or x.constant or not isinstance(op, Transpose | Reshape | Mul | Div | Slice | Take):
        return None
    below = layered(x.inputs[0], depth - 1)
    if below is None or (isinstance(op, Mul | Div) and not _is_number(x.inputs[1])):
        return None
    if isinstance(op, Slice | Take):
        return None if op.axis in (below.row, *below.batch) else _viewed(below, x, (below.row, *below.batch))
    if isinstance(op, Transpose):
        return _viewed(below, x, tuple(map(op.perm.index, (below.row, *below.batch))))
    if isinstance(op, Reshape):
        at = [axis_after(x.inputs[0].shape, a, x.shape) for a in (below.row, *below.batch)]
        return None if None in at else _viewed(below, x, tuple(a for a in at if a is not None))
    return _viewed(below, x, (below.row, *below.batch))


def axis_after(shape: Shape, axis: int, to: Shape) -> int | None:
    """Which axis one is after a Reshape; None where it is none by itself."""
    before, size = product(shape[:axis]), shape[axis]
    fits = (a for a, d in enumerate(to) if are_equal(d, size) and are_equal(product(to[:a]), before))
    return None if is_one(size) else next(fits, None)


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
                return found and found._replace(bias=reshaped(bias.inputs[0], (*_ones(x), x.shape[-1])))
    whole = product_of(x) if isinstance(op, MatMul) and x.inputs[1].constant else None
    if whole is None or is_one(x.shape[-2]) or not all(isinstance(d, int) for d in whole.weights.shape):
        return None
    batch = tuple(a for a, d in enumerate(x.shape[:-2]) if not is_one(d))
    rows = reshaped(whole.x, (*(x.shape[a] for a in batch), *whole.x.shape[-2:]))
    weights = reshaped(whole.weights, (*_ones(x)[:-1], *whole.weights.shape))
    return Layered(rows, weights, None, x.type.rank - 2, batch)


def _ones(x: Term) -> Shape:
    return (1,) * (x.type.rank - 1)


def _viewed(below: Layered, x: Term, at: tuple[int, ...]) -> Layered:
    """A view whose axes of rows and batches are those now, with weights and bias viewed as it is."""
    (row, *batch) = at

    def alike(of: Term, size: Dim) -> Term:
        op = x.operator
        if isinstance(op, Reshape):
            return reshaped(of, tuple(size if a == row else 1 if a in batch else d for a, d in enumerate(x.shape)))
        others = tuple(Expand((), of.shape)(other.inputs[0]) for other in x.inputs[1:])
        return make(op, (of, *others))

    bias = None if below.bias is None else alike(below.bias, 1)
    return Layered(below.rows, alike(below.weights, below.weights.shape[below.row]), bias, row, tuple(batch))


def _is_number(term: Term) -> bool:
    """Whether a constant number is repeated everywhere."""
    return term.constant and isinstance(term.operator, Expand) and term.operator.axes == ()
