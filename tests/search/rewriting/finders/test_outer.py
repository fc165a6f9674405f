"""Outer products are multiplied by one of their factors after the other, exactly."""

from __future__ import annotations

import pytest

from superopt.arithmetic.field import FIELD
from superopt.dim import Dim, product
from superopt.evaluate import evaluate, sample
from superopt.operators.conv import Conv
from superopt.operators.layout import Expand, Transpose, reshaped
from superopt.operators.matmul import MatMul
from superopt.operators.pointwise import Add, Mul
from superopt.search.rewriting.finders.outer import Outering
from superopt.search.rewriting.rewrites import Less, rewrites_of
from superopt.term import Term, running, variable

BATCH, RESULTS, PLACES = 2, 3, 7


def weight(*shape: Dim) -> Term:
    return variable("w", shape, constant=True)


def fields(rows: int, columns: int) -> Term:
    """Each field times each map, (batch, rows, columns, places)."""
    x, y = (variable(n, (BATCH, size, PLACES)) for n, size in (("x", rows), ("y", columns)))
    shape = (BATCH, rows, columns, PLACES)
    return Mul()(Expand((0, 1, 3), shape)(x), Expand((0, 2, 3), shape)(y))


def convolved(pairs: Term) -> Term:
    channels = product(pairs.shape[1:3])
    return Conv((1,), (0, 0), (1,))(reshaped(pairs, (BATCH, channels, PLACES)), weight(RESULTS, channels, 1))


def multiplied(pairs: Term) -> Term:
    rows = reshaped(pairs, (*pairs.shape[:-2], product(pairs.shape[-2:])))
    return MatMul()(rows, weight(rows.shape[-1], RESULTS))


COLUMNS, ROWS = variable("x", (BATCH, PLACES, 4, 1)), variable("y", (BATCH, PLACES, 1, 5))
BESIDE = Expand((0, 2), (BATCH, 4, 5))(variable("y", (BATCH, 5)))

PAIRS = {
    "a network of interactions": convolved(fields(4, 5)),
    "of more fields than maps": convolved(fields(5, 4)),
    "columns by rows, moved": convolved(Transpose((0, 2, 3, 1))(MatMul()(COLUMNS, ROWS))),
    "columns by rows, exchanged": convolved(Transpose((0, 3, 2, 1))(MatMul()(COLUMNS, ROWS))),
    "a bilinear layer": multiplied(Mul()(Expand((0, 1), (BATCH, 4, 5))(variable("x", (BATCH, 4))), BESIDE)),
    "of a row for all": multiplied(Mul()(Expand((1,), (BATCH, 4, 5))(variable("x", (4,))), BESIDE)),
}


@pytest.mark.parametrize("term", PAIRS.values(), ids=PAIRS)
def test_no_product_of_all_pairs_is_written(term: Term) -> None:
    made = Outering().of(term)
    assert made is not None
    assert made.type == term.type
    assert [type(t.operator) for t in running(made) if isinstance(t.operator, MatMul | Mul | Conv)] == [MatMul, MatMul]
    env = sample((term, made), FIELD, 1)
    assert (evaluate(made, FIELD, env) == evaluate(term, FIELD, env)).all()


LEFT = {
    "a sum of all pairs": convolved(Add()(*fields(4, 5).inputs)),
    "a factor of all pairs": convolved(Mul()(fields(4, 5).inputs[0], variable("z", (BATCH, 4, 5, PLACES)))),
    "a product of more than columns": convolved(
        Transpose((0, 2, 3, 1))(MatMul()(variable("x", (BATCH, PLACES, 4, 2)), variable("y", (BATCH, PLACES, 2, 5))))
    ),
    "pairs with places": MatMul()(reshaped(fields(4, 5), (BATCH * 4, 5 * PLACES)), weight(5 * PLACES, RESULTS)),
}


@pytest.mark.parametrize("term", LEFT.values(), ids=LEFT)
def test_what_is_no_outer_product_is_left(term: Term) -> None:
    assert Outering().of(term) is None


def test_searches_look_for_it() -> None:
    assert Less(Outering) in rewrites_of((), ["gemm"])
