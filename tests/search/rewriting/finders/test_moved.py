"""Axes that are moved after what is computed are moved before it where less is moved then, exactly."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from superopt.arithmetic.field import FIELD
from superopt.arithmetic.floats import FLOAT
from superopt.demands import assuming
from superopt.dim import symbol
from superopt.evaluate import evaluate, sample
from superopt.operators.differences import Sub
from superopt.operators.functions import Exp
from superopt.operators.layout import Concat, Expand, Reshape, Transpose
from superopt.operators.matmul import MatMul
from superopt.operators.normalize import Softmax
from superopt.operators.picks import Slice, Take
from superopt.operators.pointwise import Add, Mul, Relu
from superopt.operators.reductions import Sum
from superopt.search.rewriting.finders.moved import MOST, Moving
from superopt.search.rewriting.rewrites import Less, rewrites_of
from superopt.term import Term, subterms, variable

SHAPE = (2, 3, 4)
X = variable("x", SHAPE)
SMALL = Expand((0, 2), SHAPE)(variable("s", (2, 4)))
FIXED = variable("c", SHAPE, constant=True)
ROW = Expand((2,), SHAPE)(variable("r", (4,)))
ORDERS = [p for p in permutations(range(3)) if p != (0, 1, 2)]


def before(order: tuple[int, ...]) -> Term:
    """Something of that shape whose axes were moved into it, so that the order moves them back."""
    return Transpose(order)(variable("b", tuple(SHAPE[order.index(a)] for a in range(3))))


MOVED = {
    "repeated": lambda p: Add()(SMALL, Mul()(ROW, FIXED)),
    "moved before": lambda p: Relu()(Sub()(before(p), ROW)),
    "in part moved before": lambda p: Add()(Mul()(before(p), ROW), FIXED),
    "sums": lambda p: Sum((1,))(Expand((0, 2, 3), (2, 7, 3, 4))(Mul()(before(p), FIXED))),
    "slices beside each other": lambda p: Concat(1)(Slice(1, 0, 2)(before(p)), Slice(1, 2, 3)(Relu()(ROW))),
    "places": lambda p: Take(2, (3, 0, 0, 1))(Mul()(SMALL, ROW)),
    "with an axis of one": lambda p: Relu()(Reshape(SHAPE)(Reshape((2, 1, 3, 4))(before(p)))),
    "moved twice": lambda p: Relu()(Transpose((1, 0, 2))(Relu()(Transpose((1, 0, 2))(before(p))))),
}


@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize("name", MOVED)
def test_less_is_moved_before_and_it_is_exactly_the_same(name: str, order: tuple[int, ...]) -> None:
    term = Transpose(order)(MOVED[name](order))
    made = Moving().of(term)
    assert made is not None
    assert made.type == term.type
    values = sample((term, made), FIELD, 1)
    np.testing.assert_array_equal(evaluate(made, FIELD, values), evaluate(term, FIELD, values))


STACKS = Transpose((1, 0, 2, 3))(variable("q", (3, 2, 4, 5)))
OF_FLOATS = {
    "softmax": Transpose((2, 1, 0))(Softmax(1)(Exp()(Add()(before((2, 1, 0)), ROW)))),
    "stacks of matrices": Transpose((1, 0, 2, 3))(MatMul()(STACKS, variable("k", (2, 3, 5, 2), constant=True))),
}


@pytest.mark.parametrize("term", OF_FLOATS.values(), ids=OF_FLOATS)
def test_what_is_no_polynomial_is_the_same_too(term: Term) -> None:
    made = Moving().of(term)
    assert made is not None
    assert made.type == term.type
    values = sample((term, made), FLOAT, 1)
    np.testing.assert_allclose(evaluate(made, FLOAT, values), evaluate(term, FLOAT, values), rtol=1e-12)


def long(term: Term) -> Term:
    for _ in range(MOST):
        term = Relu()(term)
    return term


LEFT = {
    "as much": Transpose((1, 0, 2))(Relu()(X)),
    "more": Transpose((1, 0, 2))(Add()(X, variable("y", SHAPE))),
    "constant": Transpose((1, 0, 2))(Relu()(FIXED)),
    "axes of one place": Transpose((1, 0, 2))(Relu()(Reshape((1, 6, 4))(X))),
    "rows of matrices": Transpose((0, 2, 1))(MatMul()(X, variable("k", (2, 4, 5)))),
    "far below": Transpose((1, 0, 2))(long(before((1, 0, 2)))),
}


@pytest.mark.parametrize("term", LEFT.values(), ids=LEFT)
def test_else_it_is_left(term: Term) -> None:
    assert Moving().of(term) is None


def test_sizes_may_stay_open() -> None:
    with assuming():
        batch = symbol("batch")
        x = Expand((0, 2), (batch, 3, 4))(variable("x", (batch, 4)))
        term = Transpose((1, 0, 2))(Relu()(Add()(x, Expand((1,), (batch, 3, 4))(variable("c", (3,))))))
    made = Moving().of(term)
    assert made is not None
    assert made.shape == (3, batch, 4)
    assert not any(isinstance(t.operator, Transpose) for t in subterms(made))


def test_a_search_tries_it() -> None:
    assert Less(Moving) in rewrites_of((), ["matmul"])
