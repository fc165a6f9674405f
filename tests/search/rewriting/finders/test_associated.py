"""Three matrices are multiplied in the order that is less, whatever scales the product of two, exactly."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from superopt.arithmetic.field import FIELD
from superopt.demands import assuming
from superopt.dim import symbol
from superopt.evaluate import evaluate, sample
from superopt.operators.layout import Expand, Transpose
from superopt.operators.matmul import MatMul
from superopt.operators.pointwise import Div, Mul
from superopt.relations import equal_shapes
from superopt.search.rewriting.finders.associated import Associating
from superopt.term import Term, running, variable

PLACES, WIDTH = 24, 3
Q, K, V = variable("q", (2, PLACES, WIDTH)), variable("k", (2, WIDTH, PLACES)), variable("v", (2, PLACES, WIDTH))
PAIRS = MatMul()(Q, K)
MUL, DIV = Mul(), Div()


def on_its_side(x: Term) -> Term:
    return Transpose((0, 2, 1))(x)


def by(*axes: int, how: Callable[[Term, Term], Term] = MUL) -> Term:
    """What places have in common, scaled by what has these axes."""
    scale = variable(f"s{axes}", tuple(PAIRS.shape[a] for a in axes))
    return how(PAIRS, Expand(axes, PAIRS.shape)(scale))


def scaled_twice() -> Term:
    rows = by(0, 1, how=DIV)
    return Mul()(Expand((2,), rows.shape)(variable("c", (PLACES,))), rows)


SCALED = {
    "divided by a number": by(how=DIV),
    "by a number of each stack": by(0),
    "by what rows have": by(1),
    "divided by what rows of each stack have": by(0, 1, how=DIV),
    "by what columns of each stack have": by(0, 2),
    "divided by what columns have": by(2, how=DIV),
    "by rows and columns": scaled_twice(),
}
ORDERS: dict[str, Callable[[Term], Term]] = {
    "first": lambda pairs: MatMul()(pairs, V),
    "first on its side": lambda pairs: MatMul()(on_its_side(pairs), V),
    "second": lambda pairs: MatMul()(on_its_side(V), pairs),
    "second on its side": lambda pairs: MatMul()(on_its_side(V), on_its_side(pairs)),
}


@pytest.mark.parametrize("scaled", SCALED.values(), ids=SCALED)
@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
def test_no_place_meets_another(order: Callable[[Term], Term], scaled: Term) -> None:
    term = order(scaled)
    made = Associating().of(term)
    assert made is not None
    assert made.type == term.type
    assert not any(t.shape[-2:] == (PLACES, PLACES) for t in running(made))
    env = sample((term, made), FIELD, 1)
    assert (evaluate(made, FIELD, env) == evaluate(term, FIELD, env)).all()


def test_places_may_be_open() -> None:
    n = symbol("n")
    with assuming():
        pairs = MatMul()(variable("q", (n, 4)), variable("k", (4, n)))
        term = MatMul()(Div()(pairs, Expand((), pairs.shape)(variable("s", ()))), variable("v", (n, 4)))
    made = Associating().of(term)
    assert made is not None
    assert not any(equal_shapes(t.shape, (n, n)) for t in running(made))


@pytest.mark.parametrize("scaled", [Mul()(PAIRS, variable("m", PAIRS.shape)), Div()(variable("m", PAIRS.shape), PAIRS)])
def test_what_masks_each_pair_stays_between(scaled: Term) -> None:
    assert Associating().of(MatMul()(scaled, V)) is None


def test_a_number_is_not_divided_by_products() -> None:
    pairs = Div()(Expand((), PAIRS.shape)(variable("s", ())), PAIRS)
    assert Associating().of(MatMul()(pairs, V)) is None


def test_the_order_that_is_less_stays() -> None:
    q, k, v = variable("q", (4, 40)), variable("k", (40, 4)), variable("v", (4, 40))
    pairs = MatMul()(q, k)
    assert Associating().of(MatMul()(Mul()(pairs, Expand((), pairs.shape)(variable("s", ()))), v)) is None
