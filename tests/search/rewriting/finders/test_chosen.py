"""Rows that choose what they are multiplied by are multiplied by all, exactly, where that is not too much."""

from __future__ import annotations

import numpy as np
import pytest

from superopt.arithmetic.field import FIELD
from superopt.dim import Dim, symbol
from superopt.evaluate import evaluate, sample
from superopt.operators.layout import Expand, Reshape, Transpose
from superopt.operators.lookups import Lookups
from superopt.operators.matmul import MatMul
from superopt.operators.rearrange import Gather
from superopt.search.rewriting.finders.chosen import MOST, Choosing
from superopt.search.rewriting.rewrites import Less, rewrites_of
from superopt.term import Term, subterms, variable

TOKENS, EACH, EXPERTS, WIDTH, RESULTS = 3, 2, 4, 5, 6
ROWS = TOKENS * EACH
X, OWN = variable("x", (TOKENS, WIDTH)), variable("y", (ROWS, 1, WIDTH))
BY_ROW = Expand((0, 2), (TOKENS, EACH, WIDTH))(X)
OVER_AGAIN = Expand((1, 2), (EACH, TOKENS, WIDTH))(X)
BETWEEN = Expand((0, 2, 3), (TOKENS, EACH, 2, WIDTH))(variable("z", (TOKENS, 2, WIDTH)))


def table(*shape: int) -> Term:
    return variable("w", shape, constant=True)


def chosen(rows: Dim = ROWS, experts: int = EXPERTS, constant: bool = True) -> Term:
    """A matrix (channels, results) for each row."""
    weights = variable("w", (experts, WIDTH, RESULTS), constant=constant)
    return Gather(0)(weights, variable("i", (rows,), "int64"))


def turned(rows: int = ROWS) -> Term:
    """A matrix (results, channels) for each row."""
    return Gather(0)(table(EXPERTS, RESULTS, WIDTH), variable("i", (rows,), "int64"))


def single(x: Term) -> Term:
    return Reshape((ROWS, 1, WIDTH))(x)


PAIRED = Gather(0)(table(EXPERTS, WIDTH, RESULTS), variable("i", (TOKENS, EACH), "int64"))

TAKEN = {
    "rows": MatMul()(OWN, chosen()),
    "columns": MatMul()(turned(), Reshape((ROWS, WIDTH, 1))(OWN)),
    "by what is transposed": MatMul()(OWN, Transpose((0, 2, 1))(turned())),
    "repeated for each": MatMul()(single(BY_ROW), chosen()),
    "repeated over again": MatMul()(single(OVER_AGAIN), chosen()),
    "repeated between": MatMul()(Reshape((2 * ROWS, 1, WIDTH))(BETWEEN), chosen(2 * ROWS)),
    "repeated columns": MatMul()(turned(), Reshape((ROWS, WIDTH, 1))(BY_ROW)),
    "pairs of a row and a choice": MatMul()(Reshape((TOKENS, EACH, 1, WIDTH))(BY_ROW), PAIRED),
}
LEFT = {
    "too many to choose from": MatMul()(single(BY_ROW), chosen(experts=MOST * EACH + 1)),
    "as many products as weights are copied": MatMul()(OWN, chosen(experts=WIDTH)),
    "several rows for a choice": MatMul()(variable("y", (ROWS, 3, WIDTH)), chosen()),
    "what is chosen from is computed": MatMul()(OWN, chosen(constant=False)),
    "rows of a number that is not known": MatMul()(variable("y", (symbol("n"), 1, WIDTH)), chosen(symbol("n"))),
    "nothing is chosen": MatMul()(OWN, table(ROWS, WIDTH, RESULTS)),
}


@pytest.mark.parametrize("name", TAKEN)
def test_products_with_all_are_chosen_from(name: str) -> None:
    term = TAKEN[name]
    made = Choosing().of(term)
    assert made is not None
    assert made.type == term.type
    assert not any(isinstance(t.operator, Gather) for t in subterms(made))
    values = sample((made, term), FIELD, 0)
    np.testing.assert_array_equal(evaluate(made, FIELD, values), evaluate(term, FIELD, values))


@pytest.mark.parametrize("name", LEFT)
def test_what_is_not_chosen_or_too_much_stays(name: str) -> None:
    assert Choosing().of(LEFT[name]) is None


def test_a_row_that_is_repeated_for_its_choices_is_multiplied_once() -> None:
    made = Choosing().of(TAKEN["repeated for each"])
    assert made is not None
    (product,) = (t for t in subterms(made) if isinstance(t.operator, MatMul))
    assert product.shape == (TOKENS, EXPERTS * RESULTS)
    (taken,) = (t for t in subterms(made) if isinstance(t.operator, Lookups))
    assert taken.operator == Lookups((EXPERTS,) * TOKENS)


def test_a_search_looks_for_it_with_definitions() -> None:
    assert Less(Choosing) in rewrites_of((), ["relu"])
    assert Less(Choosing) not in rewrites_of((), [])
