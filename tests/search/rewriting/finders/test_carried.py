"""What chooses its weights twice in the same way goes through all of them, exactly, and is chosen after that."""

from __future__ import annotations

import numpy as np
import pytest

from superopt.arithmetic.field import FIELD
from superopt.evaluate import evaluate, sample
from superopt.operators.layout import Expand, Reshape
from superopt.operators.matmul import MatMul
from superopt.operators.picks import Slice
from superopt.operators.pointwise import Add, Mul
from superopt.operators.rearrange import Gather
from superopt.search.rewriting.finders.carried import Carrying
from superopt.search.rewriting.finders.chosen import MOST
from superopt.search.rewriting.rewrites import Less, rewrites_of
from superopt.term import Term, subterms, variable

TOKENS, EACH, EXPERTS, WIDTH, HIDDEN, RESULTS = 3, 2, 4, 5, 6, 7
ROWS = TOKENS * EACH
X = variable("x", (TOKENS, WIDTH))
BY_ROW = Expand((0, 2), (TOKENS, EACH, WIDTH))(X)
OVER_AGAIN = Expand((1, 2), (EACH, TOKENS, WIDTH))(X)
CHOICES = Reshape((ROWS,))(variable("i", (TOKENS, EACH), "int64"))
OTHER = variable("j", (ROWS,), "int64")


def chosen(name: str, *shape: int, by: Term = CHOICES, experts: int = EXPERTS, constant: bool = True) -> Term:
    return Gather(0)(variable(name, (experts, *shape), constant=constant), by)


def first(x: Term, by: Term = CHOICES, experts: int = EXPERTS) -> Term:
    """Single rows times chosen weights (channels, results), as rows."""
    rows = Reshape((ROWS, 1, WIDTH))(x)
    return Reshape((ROWS, 2 * HIDDEN))(MatMul()(rows, chosen("w", WIDTH, 2 * HIDDEN, by=by, experts=experts)))


def gated(x: Term) -> Term:
    return Mul()(Slice(1, 0, HIDDEN)(x), Slice(1, HIDDEN, 2 * HIDDEN)(x))


def second(z: Term, experts: int = EXPERTS) -> Term:
    return MatMul()(Reshape((ROWS, 1, HIDDEN))(z), chosen("v", HIDDEN, RESULTS, experts=experts))


COLUMNS = Reshape((ROWS, 2 * HIDDEN))(
    MatMul()(chosen("w", 2 * HIDDEN, WIDTH), Reshape((ROWS, WIDTH, 1))(BY_ROW)),
)
BIASED = Add()(first(BY_ROW), chosen("b", 2 * HIDDEN))
SHIFTED = Add()(first(BY_ROW), Expand((1,), (ROWS, 2 * HIDDEN))(variable("s", (2 * HIDDEN,))))

CARRIED = {
    "repeated for each": second(gated(first(BY_ROW))),
    "repeated over again": second(gated(first(OVER_AGAIN))),
    "each of its own": second(gated(first(variable("y", (ROWS, WIDTH))))),
    "a column": MatMul()(chosen("v", RESULTS, HIDDEN), Reshape((ROWS, HIDDEN, 1))(gated(COLUMNS))),
    "biases that are chosen": second(gated(BIASED)),
    "a shift that is the same": second(gated(SHIFTED)),
}
LEFT = {
    "chosen otherwise": second(gated(first(BY_ROW, by=OTHER))),
    "rows of another kind between": second(Mul()(gated(first(BY_ROW)), variable("y", (ROWS, HIDDEN)))),
    "nothing chosen before": second(variable("y", (ROWS, HIDDEN))),
    "too many to choose from": second(gated(first(BY_ROW, experts=MOST * EACH + 1)), experts=MOST * EACH + 1),
    "rows that are mixed between": second(MatMul()(variable("m", (ROWS, ROWS), constant=True), gated(first(BY_ROW)))),
}


@pytest.mark.parametrize("term", CARRIED.values(), ids=CARRIED)
def test_all_rows_go_through_all_weights_exactly(term: Term) -> None:
    made = Carrying().of(term)
    assert made is not None
    assert made.type == term.type
    assert not any(isinstance(t.operator, Gather) for t in subterms(made))
    values = sample((made, term), FIELD, 0)
    np.testing.assert_array_equal(evaluate(made, FIELD, values), evaluate(term, FIELD, values))


def test_a_row_that_is_repeated_for_its_choices_is_multiplied_once_by_each() -> None:
    made = Carrying().of(CARRIED["repeated for each"])
    assert made is not None
    products = [t.shape for t in subterms(made) if isinstance(t.operator, MatMul)]
    assert products == [(TOKENS, EXPERTS * 2 * HIDDEN), (EXPERTS, TOKENS, RESULTS)]


@pytest.mark.parametrize("term", LEFT.values(), ids=LEFT)
def test_else_it_is_left(term: Term) -> None:
    assert Carrying().of(term) is None


def test_a_search_tries_it() -> None:
    assert Less(Carrying) in rewrites_of((), ["matmul"])
