"""Products with repeated matrices are one product of the rows of all, exactly; with others they stay."""

from __future__ import annotations

import pytest

from superopt.dim import Shape
from superopt.operators.constant import Scalar
from superopt.operators.layout import Expand, Reshape, Transpose
from superopt.operators.matmul import MatMul
from superopt.operators.pointwise import Add, Mul
from superopt.search.rewriting.finders.grouped import Grouping
from superopt.search.rewriting.rewrites import Less, rewrites_of
from superopt.term import Term, subterms, variable
from tests.operators.definitions.equality import assert_equal

BATCH, GROUPS, EACH, ROWS, KEYS, WIDTH = 2, 3, 4, 5, 6, 7
HEADS = GROUPS * EACH
Q = variable("q", (BATCH, HEADS, ROWS, WIDTH))
P = variable("p", (BATCH, HEADS, ROWS, KEYS))


def repeated(batch: int = BATCH, last: Shape = (KEYS, WIDTH), name: str = "k") -> Term:
    """For each head, the matrix of its group."""
    once = variable(name, (batch, GROUPS, *last))
    return Expand((0, 1, 3, 4), (batch, GROUPS, EACH, *last))(once)


def of_heads(x: Term) -> Term:
    return Reshape((BATCH, HEADS, *x.shape[-2:]))(x)


TURNED = Transpose((0, 1, 3, 2))(of_heads(repeated()))
BEFORE = of_heads(Transpose((0, 2, 1))(Reshape((BATCH * HEADS, KEYS, WIDTH))(repeated())))
FOUND = {
    "keys": MatMul()(Q, TURNED),
    "keys of single matrices": MatMul()(Q, BEFORE),
    "keys that are scaled": MatMul()(Q, Mul()(TURNED, Expand((), TURNED.shape)(Scalar(0.5)()))),
    "values": MatMul()(P, of_heads(repeated())),
    "values of one batch": MatMul()(variable("p", (HEADS, ROWS, KEYS)), Reshape((HEADS, KEYS, WIDTH))(repeated(1))),
}
OVER_AGAIN = Expand((0, 2, 3, 4), (BATCH, EACH, GROUPS, KEYS, WIDTH))(variable("k", (BATCH, GROUPS, KEYS, WIDTH)))
ROWS_REPEATED = Expand((0, 1, 3), (BATCH, HEADS, KEYS, WIDTH))(variable("k", (BATCH, HEADS, WIDTH)))
LEFT = {
    "one for each": MatMul()(P, variable("v", (BATCH, HEADS, KEYS, WIDTH))),
    "over and over again": MatMul()(P, of_heads(OVER_AGAIN)),
    "repeated rows": MatMul()(P, ROWS_REPEATED),
    "shifted each by its own": MatMul()(P, Add()(of_heads(repeated()), variable("b", (BATCH, HEADS, KEYS, WIDTH)))),
    "constant": MatMul()(
        P,
        of_heads(
            Expand((0, 1, 3, 4), (BATCH, GROUPS, EACH, KEYS, WIDTH))(
                variable("k", (BATCH, GROUPS, KEYS, WIDTH), constant=True)
            )
        ),
    ),
}


@pytest.mark.parametrize("term", FOUND.values(), ids=FOUND)
def test_it_is_one_product_of_more_rows_exactly(term: Term) -> None:
    made = assert_equal(Grouping().of(term), term)
    (product,) = (t for t in subterms(made) if isinstance(t.operator, MatMul))
    assert product.inputs[0].shape[-2] == EACH * ROWS
    assert not any(isinstance(t.operator, Expand) and t.operator.axes for t in subterms(made))


@pytest.mark.parametrize("term", LEFT.values(), ids=LEFT)
def test_else_it_is_left(term: Term) -> None:
    assert Grouping().of(term) is None


def test_a_search_tries_it() -> None:
    assert any(isinstance(r, Less) and r.name == Grouping.name for r in rewrites_of((), ("gelu",)))
