"""Products of three matrices, multiplied in the order that is less: also where what the first two make is scaled.

Blocks of all places with all others that have no softmax divide what places have in common by how many there are, and
multiply by values: `(q·kᵀ / n)·v` (non-local networks, Wang et al. 2018; transformers of operators, Cao 2021), or by
what each row adds up to. That is `q·(kᵀ·v / n)`, and no place meets another. Rules say that three products may be
multiplied in either order; what scales the first is in their way, and to carry it on does not pay by itself.
What scales rows scales those of the result, what scales columns the rows of the third matrix, and numbers the product
that is made first.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

from superopt.operators.layout import Expand, Transpose
from superopt.operators.matmul import MatMul
from superopt.operators.pointwise import Div, Mul
from superopt.search.rewriting.finders.fewer import Fewer
from superopt.search.rewriting.finders.sizes import elements
from superopt.search.rewriting.finders.turned import turned
from superopt.term import Term

WORTH = 0.8
"""Of the multiplications that there are, those that are left at most."""

MOST = 4
"""Steps between two products, at most."""


class Scale(NamedTuple):
    """What each element is multiplied by, or divided: a value repeated along the axes that it has not."""

    by: Mul | Div
    x: Term
    axes: tuple[int, ...]

    def of(self, y: Term) -> Term:
        """A value of another shape, scaled so."""
        return self.by(y, Expand(self.axes, y.shape)(self.x))


class Scaled(NamedTuple):
    """A product of matrices, and what scales it."""

    left: Term
    right: Term
    scales: tuple[Scale, ...] = ()


class Associating(Fewer):
    """Finds products with a product that is scaled, in the dearer order."""

    name = "products of three matrices in the order that is less"
    heads = (MatMul,)

    def may_be(self, term: Term) -> bool:
        """Whether one side is scaled, or turned; rules know products right below each other."""
        return any(isinstance(i.operator, Mul | Div | Transpose) and not i.constant for i in term.inputs)

    def made(self, term: Term) -> Term | None:
        """The product in the other order; None where that is not clearly less."""
        one, other = term.inputs
        if (found := _scaled(one, MOST)) is not None and (made := _to_the_right(found, other)) is not None:
            return made
        if (found := _scaled(other, MOST)) is None:
            return None
        made = _to_the_right(_turned(found), _on_its_side(one))
        return None if made is None else _on_its_side(made)


def _scaled(x: Term, steps: int) -> Scaled | None:
    """A value as a product that is scaled; None where it is none."""
    op, rank = x.operator, x.type.rank
    if isinstance(op, MatMul):
        return Scaled(x.inputs[0], x.inputs[1])
    if not steps or x.constant:
        return None
    if isinstance(op, Transpose) and op.perm == (*range(rank - 2), rank - 1, rank - 2):
        found = _scaled(x.inputs[0], steps - 1)
        return None if found is None else _turned(found)
    if not isinstance(op, Mul | Div):
        return None
    for product, scale in (x.inputs, x.inputs[::-1])[: 2 if isinstance(op, Mul) else 1]:
        repeat = scale.operator
        if isinstance(repeat, Expand) and not {rank - 2, rank - 1} <= set(repeat.axes):
            found = _scaled(product, steps - 1)
            if found is not None:
                return found._replace(scales=(*found.scales, Scale(op, scale.inputs[0], repeat.axes)))
    return None


def _to_the_right(made: Scaled, third: Term) -> Term | None:
    """A product that is scaled, times a third matrix, of which the second one is multiplied by that first; None where
    that is not clearly less.
    """
    rows, columns, (inner, width) = made.left.shape[-2], third.shape[-1], made.right.shape[-2:]
    before = elements((rows, inner, width)) + elements((rows, width, columns))
    after = elements((inner, width, columns)) + elements((rows, inner, columns))
    if after > WORTH * before:
        return None
    rank = third.type.rank
    of_rows, of_columns, of_all = (
        [s for s in made.scales if wanted == tuple(a in s.axes for a in (rank - 2, rank - 1))]
        for wanted in ((True, False), (False, True), (False, False))
    )
    below = _all_of(MatMul()(made.right, _all_of(third, [_along_rows(s, rank) for s in of_columns])), of_all)
    return _all_of(MatMul()(made.left, below), of_rows)


def _all_of(x: Term, scales: Sequence[Scale]) -> Term:
    """A value scaled by all of these."""
    return reduce(lambda y, scale: scale.of(y), scales, x)


def _along_rows(scale: Scale, rank: int) -> Scale:
    """What scales columns, for the rows of what they are multiplied by, or the other way round."""
    exchanged = {rank - 2: rank - 1, rank - 1: rank - 2}
    return scale._replace(axes=tuple(exchanged.get(a, a) for a in scale.axes))


def _turned(made: Scaled) -> Scaled:
    """The same on its side: the product of the two in the other order, each on its side."""
    left, right = _on_its_side(made.right), _on_its_side(made.left)
    return Scaled(left, right, tuple(_along_rows(s, left.type.rank) for s in made.scales))


def _on_its_side(x: Term) -> Term:
    """Matrices with rows as columns; themselves where they are on their side already."""
    rank, op = x.type.rank, x.operator
    perm = (*range(rank - 2), rank - 1, rank - 2)
    return x.inputs[0] if isinstance(op, Transpose) and op.perm == perm else turned(x, perm)
