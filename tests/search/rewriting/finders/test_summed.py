"""What is linear is computed of sums, exactly, and not of each value that is added up."""

from __future__ import annotations

import numpy as np
import pytest

from superopt.arithmetic.field import FIELD
from superopt.dim import Dim
from superopt.evaluate import evaluate, sample
from superopt.operators.conv import Conv
from superopt.operators.differences import Sub
from superopt.operators.layout import Concat, Expand, Reshape, Transpose
from superopt.operators.matmul import MatMul
from superopt.operators.picks import Slice
from superopt.operators.pointwise import Add, Div, Mul, Relu
from superopt.operators.reductions import Mean, Sum
from superopt.search.rewriting.finders.summed import Summing
from superopt.search.rewriting.rewrites import Less, rewrites_of
from superopt.term import Term, subterms, variable

MANY, ROWS, WAVES, PLACES = 3, 4, 6, 8
X = variable("x", (2, MANY, ROWS, WAVES))
SHAPE = X.shape
ONE = Expand((0, 2, 3), SHAPE)(variable("u", (2, ROWS, WAVES)))
FILTERS = Expand((1, 2, 3), SHAPE)(variable("k", SHAPE[1:], constant=True))
WEIGHTS = variable("w", (MANY,), constant=True)


def weight(*shape: Dim) -> Term:
    return variable("v", shape, constant=True)


def back(x: Term) -> Term:
    """Transformed along the last axis, all in the same way."""
    to = (*x.shape[:-2], x.shape[-1], PLACES)
    return MatMul()(x, Expand((x.type.rank - 2, x.type.rank - 1), to)(weight(x.shape[-1], PLACES)))


def weighed(x: Term, by: Term = WEIGHTS) -> Term:
    return Mul()(x, Expand((1,), x.shape)(by))


SPECTRUM = Concat(3)(Sub()(Mul()(ONE, FILTERS), X), Mul()(FILTERS, ONE))
MIXED = variable("m", (2, ROWS, WAVES))

SUMMED = {
    "a sum": Sum((1,))(back(X)),
    "a mean": Mean((1,))(back(X)),
    "a weighted sum": Sum((1,))(weighed(back(X))),
    "weights of weights": Sum((1,))(weighed(back(weighed(X, variable("y", (MANY,)))))),
    "of products with filters": Sum((1,))(back(Mul()(ONE, FILTERS))),
    "of quotients": Sum((1,))(Div()(X, ONE)),
    "of what is joined": Sum((1,))(weighed(back(SPECTRUM))),
    "of a part": Sum((1,))(Slice(3, 0, 5)(back(X))),
    "of what is moved": Sum((2,))(Transpose((0, 2, 1, 3))(back(X))),
    "of what was reshaped": Sum((1,))(Reshape((2, MANY, ROWS, PLACES))(Reshape((2, MANY, ROWS, 2, 4))(back(X)))),
    "a convolution of single places": Conv((1,), (0, 0), (1,))(back(MIXED), weight(2, ROWS, 1)),
    "rows mixed by a product": MatMul()(weight(2, ROWS), back(variable("y", (ROWS, WAVES)))),
    "rows of a stack": MatMul()(Expand((1, 2), (2, 2, ROWS))(weight(2, ROWS)), back(MIXED)),
    "columns of a product of two": MatMul()(MatMul()(variable("a", (5, 5)), variable("b", (5, 4))), weight(4, 2)),
}
LEFT = {
    "bent": Sum((1,))(Relu()(back(X))),
    "only moved": Sum((2,))(Transpose((0, 2, 1, 3))(X)),
    "both differ": Sum((1,))(Mul()(X, X)),
    "along the axis that is transformed": Sum((3,))(back(X)),
    "joined along the axis": Sum((1,))(Concat(1)(X, X)),
    "as many results": MatMul()(weight(ROWS, ROWS), back(variable("y", (ROWS, WAVES)))),
    "windows": Conv((1,), (1, 1), (1,))(back(MIXED), weight(2, ROWS, 3)),
    "a divisor differs": Sum((1,))(Div()(ONE, X)),
    "nothing is linear in it": Sum((1,))(Add()(X, ONE)),
}


def found(term: Term) -> Term | None:
    return Summing().of(term)


@pytest.mark.parametrize("term", SUMMED.values(), ids=SUMMED)
def test_what_is_linear_is_computed_of_the_sum_exactly(term: Term) -> None:
    made = found(term)
    assert made is not None
    assert made.type == term.type
    values = sample((term, made), FIELD, 1)
    np.testing.assert_array_equal(evaluate(made, FIELD, values), evaluate(term, FIELD, values))


@pytest.mark.parametrize("term", LEFT.values(), ids=LEFT)
def test_else_it_is_left(term: Term) -> None:
    assert found(term) is None


def test_one_spectrum_is_transformed_back_for_all_filters() -> None:
    made = found(SUMMED["of what is joined"])
    assert made is not None
    assert {t.shape[:-1] for t in subterms(made) if isinstance(t.operator, MatMul)} == {(2, 1, ROWS)}


def test_filters_that_are_weighed_are_constant() -> None:
    made = found(Sum((1,))(weighed(back(Mul()(ONE, FILTERS)))))
    assert made is not None
    assert all(t.constant for t in subterms(made) if isinstance(t.operator, Sum))


def test_a_search_tries_it() -> None:
    assert Less(Summing) in rewrites_of((), ["matmul"])
