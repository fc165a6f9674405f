"""What is computed of each element of short rows is computed with the axis of these first, exactly."""

from __future__ import annotations

import numpy as np
import pytest

from superopt.arithmetic.field import FIELD
from superopt.evaluate import evaluate, sample
from superopt.operators.differences import Sub
from superopt.operators.layout import Concat, Expand, Reshape, Transpose
from superopt.operators.picks import Slice
from superopt.operators.pointwise import Add, Mul, Relu
from superopt.search.rewriting.finders.fronted import MOST, Fronting
from superopt.search.rewriting.rewrites import Less, rewrites_of
from superopt.term import Term, subterms, variable

ROWS, COLUMNS, KNOTS = 4, 3, 5
SHAPE = (ROWS, COLUMNS, KNOTS)
X = Expand((0, 1), SHAPE)(variable("x", (ROWS, COLUMNS)))
GRID = Expand((1, 2), SHAPE)(variable("g", (COLUMNS, KNOTS), constant=True))
ROW = Expand((2,), SHAPE)(variable("r", (KNOTS,), constant=True))
OWN = variable("y", SHAPE)


def mixed(x: Term) -> Term:
    """Two neighbours, weighed: a step of the recursion of splines."""
    left, right = Sub()(x, GRID), Mul()(Sub()(GRID, x), ROW)
    return Add()(Mul()(Slice(2, 0, KNOTS - 1)(left), x_of(x)), Mul()(Slice(2, 1, KNOTS)(right), x_of(x)))


def x_of(x: Term) -> Term:
    return Slice(2, 1, KNOTS)(x)


def flat(x: Term) -> Term:
    rows, columns, knots = x.shape
    return Reshape((rows, columns * knots))(x)


TURNED = {
    "splines": flat(mixed(X)),
    "a constant of all axes": flat(mixed(Mul()(X, variable("c", SHAPE, constant=True)))),
    "parts beside each other": flat(Add()(Concat(2)(mixed(X), x_of(X)), Concat(2)(x_of(X), mixed(X)))),
    "some of the other places": flat(Add()(Slice(1, 0, 2)(mixed(X)), Slice(1, 1, 3)(mixed(X)))),
    "what is repeated at all places": flat(mixed(Add()(X, Expand((), SHAPE)(variable("s", ()))))),
}

LEFT = {
    "few operators": flat(Sub()(X, GRID)),
    "rows of which nothing is repeated": flat(mixed(OWN)),
    "a value with rows of its own": flat(mixed(Add()(X, OWN))),
    "repeated constants": flat(mixed(Expand((0, 1), SHAPE)(variable("k", (ROWS, COLUMNS), constant=True)))),
    "long rows": Reshape((ROWS * 32,))(Relu()(Expand((0,), (ROWS, 32))(variable("v", (ROWS,))))),
}


@pytest.mark.parametrize("term", TURNED.values(), ids=TURNED)
def test_with_the_axis_first_it_is_exactly_the_same(term: Term) -> None:
    made = Fronting().of(term)
    assert made is not None
    assert made.type == term.type
    values = sample((term, made), FIELD, 1)
    np.testing.assert_array_equal(evaluate(made, FIELD, values), evaluate(term, FIELD, values))


@pytest.mark.parametrize("term", LEFT.values(), ids=LEFT)
def test_else_it_is_left(term: Term) -> None:
    assert Fronting().of(term) is None


def test_nothing_is_transposed_but_the_result_and_constants() -> None:
    made = Fronting().of(TURNED["splines"])
    assert made is not None
    assert [t.shape for t in subterms(made) if isinstance(t.operator, Transpose) and not t.constant] == [
        (ROWS, COLUMNS, KNOTS - 1)
    ]


def test_long_computations_are_not_followed() -> None:
    term = X
    for _ in range(MOST):
        term = Relu()(Sub()(term, GRID))
    assert Fronting().of(flat(term)) is None


def test_a_search_tries_it() -> None:
    assert Less(Fronting) in rewrites_of((), ["matmul"])
