"""What chooses its weights twice in the same way, computed for all choices, and taken behind the second.

An expert of a mixture is two products with a gate between (Shazeer et al. 2017), and each of these takes its own copy
of weights for every token and choice. `chosen.py` multiplies by all at one of them; before the second, what was chosen
of each token is multiplied by all again, as many times more as experts are chosen. Here no choice is taken before the
end: all tokens go through all experts, as one product with all first weights beside each other and a stack of the
second ones, and of the results those are taken that were chosen. What stands between has to compute each row apart.
"""

from __future__ import annotations

from superopt.operators.along import read_along, widened
from superopt.operators.chains import viewed
from superopt.operators.declared import Declared
from superopt.operators.layout import Expand, Transpose, reshaped
from superopt.operators.lookups import MOST_ROWS
from superopt.operators.matmul import MatMul
from superopt.operators.nodes import concrete
from superopt.operators.rearrange import Gather
from superopt.search.rewriting.finders.chosen import MOST, Choice, Rows, chosen_by, rows_of, taken_of
from superopt.search.rewriting.finders.fewer import Fewer
from superopt.term import Term, make, subterms

MOST_BETWEEN = 32
"""More operators than these between two products are not looked at."""


class Carrying(Fewer):
    """Finds products of rows with chosen weights, of rows that were multiplied by chosen weights before."""

    name = "multiplied twice by all, and chosen after that"
    heads = (MatMul,)

    def may_be(self, term: Term) -> bool:
        """Whether it is a product with what is gathered of a constant, for each of a stack, of what is computed."""
        found = chosen_by(term) if term.type.rank == 3 else None
        return found is not None and bool(found[0].inputs)

    def made(self, term: Term) -> Term | None:
        """What was chosen of what all rows become by all weights; None where these are too many."""
        found = chosen_by(term)
        if found is None:
            return None
        row, second = found
        count, inner, results = concrete(second.matrices.shape, "chosen weights")
        rows = _first(row, viewed(second.choices))
        if rows is None or count > MOST * rows.each or rows.before * rows.after * count > MOST_ROWS:
            return None
        tokens = rows.before * rows.after
        z = _Every(viewed(second.choices), count, rows).of(row, 0)
        if z is None:
            return None
        stacked = MatMul()(Transpose((1, 0, 2))(reshaped(z, (tokens, count, inner))), second.matrices)
        products = reshaped(Transpose((1, 0, 2))(stacked), (tokens * count, results))
        return reshaped(taken_of(products, rows, count, second.choices), term.shape)


def _first(z: Term, choices: Term) -> Rows | None:
    """The rows of a first product below, with weights that were chosen in the same way."""
    for term in subterms(z)[-MOST_BETWEEN:]:
        if (found := _chosen_alike(term, choices)) is not None:
            return rows_of(found[0], concrete(found[1].matrices.shape, "chosen weights")[1])
    return None


def _chosen_alike(x: Term, choices: Term) -> tuple[Term, Choice] | None:
    """What a term multiplies, by what was chosen in the same way."""
    found = chosen_by(x) if isinstance(x.operator, MatMul) and x.type.rank == 3 else None
    return found if found is not None and viewed(found[1].choices) is choices else None


class _Every:
    """Terms that have a row for each choice, with a row for each of all there are: of the first row, then the next."""

    def __init__(self, choices: Term, count: int, rows: Rows) -> None:
        self._choices, self._count, self._rows = choices, count, rows
        self._tokens = rows.before * rows.after
        self._made: dict[tuple[Term, int], Term | None] = {}

    def of(self, x: Term, axis: int) -> Term | None:
        """A term with such rows along an axis; None where its rows are not computed apart, or of what is no choice."""
        key = x, axis
        if key not in self._made:
            self._made[key] = None
            if len(self._made) <= MOST_BETWEEN:
                self._made[key] = self._leaf(x) if axis == 0 else None
                self._made[key] = self._made[key] or self._of(x, axis)
        return self._made[key]

    def _leaf(self, x: Term) -> Term | None:
        """All products of a row with chosen weights, or of a table all that is chosen; None of others."""
        if (found := _chosen_alike(x, self._choices)) is not None:
            return self._multiplied(x, *found)
        if x.operator != Gather(0) or not x.inputs[0].constant or viewed(x.inputs[1]) is not self._choices:
            return None
        (table, _), rest = x.inputs, tuple(range(2, x.type.rank + 1))
        to = (self._tokens, self._count, *table.shape[1:])
        return reshaped(Expand((1, *rest), to)(table), (self._all, *x.shape[1:]))

    def _of(self, x: Term, axis: int) -> Term | None:
        op, read = x.operator, read_along(x, axis)
        if read is None or not isinstance(op, Declared) or isinstance(op, Expand):
            return None
        inputs = [i if a is None else self._row(i, a) for i, a in zip(x.inputs, read, strict=True)]
        made = [i for i in inputs if i is not None]
        return make(widened(op, axis, self._all), made) if len(made) == len(inputs) else None

    def _row(self, x: Term, axis: int) -> Term | None:
        """An input, which may be the same for all rows."""
        repeat = x.operator
        if not isinstance(repeat, Expand) or axis in repeat.axes:
            return self.of(x, axis)
        return Expand(repeat.axes, (*x.shape[:axis], self._all, *x.shape[axis + 1 :]))(*x.inputs)

    @property
    def _all(self) -> int:
        """How many rows there are."""
        return self._count * self._tokens

    def _multiplied(self, x: Term, row: Term, choice: Choice) -> Term | None:
        """All products of rows with chosen weights, where they are the rows that others are of."""
        count, inner, results = concrete(choice.matrices.shape, "chosen weights")
        if count != self._count or rows_of(row, inner) != self._rows:
            return None
        beside = reshaped(Transpose((1, 0, 2))(choice.matrices), (inner, count * results))
        return reshaped(MatMul()(self._rows.x, beside), (self._all, *x.shape[1:]))
