"""Rows that are each multiplied by a matrix of its own choice: by all of them at once, and what was chosen is taken.

A mixture of experts (Shazeer et al. 2017) is exported so that it takes a copy of the weights for each token and expert
that the router chose, and multiplies each by a single row: that moves more memory than it computes. All rows times all
matrices beside each other are one product, of which a row is taken for each choice (`operators/lookups.py`). That is
more to multiply, but a runtime multiplies many times faster what it does not have to copy; so it is offered where it is
not too many times as much, and measured. A row that is repeated for each of its choices is multiplied once.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from superopt.operators.chains import viewed
from superopt.operators.layout import Expand, Transpose, reshaped
from superopt.operators.lookups import MOST_ROWS, Lookups
from superopt.operators.matmul import MatMul
from superopt.operators.nodes import concrete
from superopt.operators.rearrange import Gather
from superopt.relations import are_equal, is_one
from superopt.search.rewriting.finders.fewer import Fewer
from superopt.term import Term, make

MOST = 32
"""So many times as much may be multiplied: onnxruntime takes as long then."""


class Choice(NamedTuple):
    """Matrices (choices, channels, results), constant, and which is meant for each row."""

    matrices: Term
    choices: Term


class Rows(NamedTuple):
    """Rows (number, channels), of which each is meant `each` times: `before` times over, beside `after` others."""

    x: Term
    before: int
    each: int
    after: int


class Choosing(Fewer):
    """Finds rows that are multiplied by matrices that are gathered for them."""

    name = "multiplied by all, and chosen after that"
    heads = (MatMul,)

    def may_be(self, term: Term) -> bool:
        """Whether it is a product of single rows, or columns, with what is gathered of a constant."""
        return chosen_by(term) is not None

    def made(self, term: Term) -> Term | None:
        """What was chosen of the products with all; None where these are too many."""
        found = chosen_by(term)
        if found is None:
            return None
        row, (matrices, choices) = found
        count, inner, results = matrices.shape
        if not isinstance(count, int) or not isinstance(inner, int) or not isinstance(results, int):
            return None
        rows = rows_of(row, inner)
        number = rows.before * rows.after
        if count > MOST * rows.each or count >= inner * rows.each or number * count > MOST_ROWS:
            return None
        beside = reshaped(Transpose((1, 0, 2))(matrices), (inner, count * results))
        products = reshaped(MatMul()(rows.x, beside), (number * count, results))
        return reshaped(taken_of(products, rows, count, choices), term.shape)


def chosen_by(term: Term) -> tuple[Term, Choice] | None:
    """The single rows of a product, or columns, and what they are multiplied by, as for rows."""
    x, y = term.inputs
    for one, many, single, by_rows in ((x, y, term.shape[-2], True), (y, x, term.shape[-1], False)):
        found = _gathered(many) if is_one(single) and not one.constant else None
        if found is not None:
            return one, found if by_rows else Choice(Transpose((0, 2, 1))(found.matrices), found.choices)
    return None


def _gathered(many: Term) -> Choice | None:
    """What a stack of matrices gathers, which may be transposed after that."""
    rank = many.type.rank
    turned = many.operator == Transpose((*range(rank - 2), rank - 1, rank - 2))
    gather = many.inputs[0] if turned else many
    if gather.operator != Gather(0) or gather.constant:
        return None
    matrices, choices = gather.inputs
    if not matrices.constant or matrices.type.rank != 3:
        return None
    return Choice(Transpose((0, 2, 1))(matrices) if turned else matrices, choices)


def rows_of(row: Term, inner: int) -> Rows:
    """Single rows as a matrix, or those that they repeat. Raises where they are not a number that is known."""
    count = math.prod(concrete(row.shape, "rows that are chosen for")) // inner
    return _repeated(viewed(row), inner) or Rows(reshaped(row, (count, inner)), count, 1, 1)


def _repeated(x: Term, inner: int) -> Rows | None:
    """The rows that are repeated along one axis, as they stand before and behind it."""
    repeat = x.operator
    if not isinstance(repeat, Expand) or not are_equal(x.shape[-1], inner):
        return None
    along = [a for a in range(x.type.rank - 1) if a not in repeat.axes]
    if len(along) != 1 or x.type.rank - 1 not in repeat.axes:
        return None
    (axis,), sizes = along, concrete(x.shape, "rows that are chosen for")
    before, after = math.prod(sizes[:axis]), math.prod(sizes[axis + 1 : -1])
    return Rows(reshaped(x.inputs[0], (before * after, inner)), before, sizes[axis], after)


def taken_of(products: Term, rows: Rows, count: int, choices: Term) -> Term:
    """Of each row's products those that were chosen, in the order of the choices."""
    before, each, after = rows.before, rows.each, rows.after
    tables, results = Lookups((count,) * (before * after)), products.shape[1]
    if each == 1:
        return make(tables, (products, reshaped(choices, (before * after,))))
    by_row = Transpose((1, 0, 2))(reshaped(choices, (before, each, after)))
    taken = make(tables, (products, reshaped(by_row, (each, before * after))))
    return Transpose((1, 0, 2, 3))(reshaped(taken, (each, before, after, results)))
