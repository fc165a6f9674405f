"""Rows of the places of other rows are a product of these with a matrix, exactly."""

from __future__ import annotations

import numpy as np
import pytest

from superopt.arithmetic.field import FIELD
from superopt.evaluate import evaluate, sample
from superopt.operators.differences import Neg
from superopt.operators.layout import Concat, Reshape
from superopt.operators.matmul import MatMul
from superopt.operators.picks import Every, Slice, Take
from superopt.operators.pointwise import Relu
from superopt.search.rewriting.finders.exchanged import LARGEST, Exchanging
from superopt.search.rewriting.rewrites import Less, rewrites_of
from superopt.term import Term, subterms, variable

SIZE = 6
X, TABLE = variable("x", (2, 3, SIZE)), variable("t", (3, SIZE))


def even(x: Term) -> Term:
    return Every(x.type.rank - 1, 2)(x)


def odd(x: Term) -> Term:
    last = x.type.rank - 1
    return even(Slice(last, 1, x.shape[last])(x))


def stacked(*parts: Term) -> Term:
    """Their elements in turns, as rows."""
    *before, size = parts[0].shape
    tall = [Reshape((*before, size, 1))(p) for p in parts]
    return Reshape((*before, size * len(parts)))(Concat(len(before) + 1)(*tall))


def turned(x: Term) -> Term:
    """Each pair of neighbours by a quarter."""
    return stacked(Neg()(odd(x)), even(x))


MADE = {
    "pairs that are turned": turned(X),
    "rows of a matrix": turned(TABLE),
    "turned twice": turned(turned(X)),
    "what is computed before": turned(Relu()(X)),
    "the even places, and then the odd ones": Reshape((2, 3, SIZE))(
        Concat(2)(Reshape((2, 3, 1, 3))(even(X)), Reshape((2, 3, 1, 3))(odd(X)))
    ),
    "places that are told": stacked(Take(2, (4, 0))(X), Neg()(Take(2, (5, 5))(X))),
    "fewer than there are": stacked(even(Slice(2, 0, 4)(X)), odd(Slice(2, 0, 4)(X))),
}

LEFT = {
    "places of two rows": stacked(Neg()(odd(X)), even(variable("y", X.shape))),
    "what bends in between": stacked(Relu()(odd(X)), even(X)),
    "halves, which stay together": Reshape((2, 3, SIZE))(
        Concat(2)(Reshape((2, 3, 1, 3))(Neg()(Slice(2, 3, 6)(X))), Reshape((2, 3, 1, 3))(Slice(2, 0, 3)(X)))
    ),
    "rows that are mixed": Reshape((3, 2, SIZE))(
        Concat(3)(Reshape((2, 3, 3, 1))(even(X)), Reshape((2, 3, 3, 1))(odd(X)))
    ),
    "long rows": turned(variable("z", (3, 2 * LARGEST))),
}


@pytest.mark.parametrize("term", MADE.values(), ids=MADE)
def test_a_product_is_exactly_the_same(term: Term) -> None:
    made = Exchanging().of(term)
    assert made is not None
    assert made.type == term.type
    values = sample((term, made), FIELD, 1)
    np.testing.assert_array_equal(evaluate(made, FIELD, values), evaluate(term, FIELD, values))
    assert sum(isinstance(t.operator, MatMul) for t in subterms(made)) == 1


@pytest.mark.parametrize("term", LEFT.values(), ids=LEFT)
def test_else_it_is_left(term: Term) -> None:
    assert Exchanging().of(term) is None


def test_a_search_tries_it() -> None:
    assert Less(Exchanging) in rewrites_of((), ["matmul"])
