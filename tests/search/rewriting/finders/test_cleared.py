"""Shares of which some are no numbers are cleared behind the product, to the bit; what are no shares stay."""

from __future__ import annotations

import numpy as np
import pytest

from superopt.arithmetic.carrier import Array
from superopt.arithmetic.floats import FLOAT
from superopt.evaluate import evaluate
from superopt.operators.comparisons import IsNan
from superopt.operators.constant import filled
from superopt.operators.logic import Where
from superopt.operators.matmul import MatMul
from superopt.operators.normalize import Softmax
from superopt.search.rewriting.finders.cleared import Clearing
from superopt.search.rewriting.rewrites import Less, rewrites_of
from superopt.term import Term, subterms, variable

HEADS, ROWS, KEYS, WIDTH = 2, 5, 6, 3
S, V = variable("s", (HEADS, ROWS, KEYS)), variable("v", (HEADS, KEYS, WIDTH))


def cleared(p: Term, number: float = 0.0, of: Term | None = None) -> Term:
    return Where()(IsNan()(of or p), filled(number, p.shape), p)


LEFT = {
    "another number": MatMul()(cleared(Softmax(2)(S), 1.0), V),
    "no shares": MatMul()(cleared(S), V),
    "shares along rows": MatMul()(cleared(Softmax(1)(S)), V),
    "where something else is no number": MatMul()(cleared(Softmax(2)(S), of=S), V),
    "weights": MatMul()(cleared(Softmax(2)(S)), variable("w", V.shape, constant=True)),
}


def drawn(rng: np.random.Generator) -> dict[Term, Array]:
    return {S: rng.standard_normal((HEADS, ROWS, KEYS)), V: rng.standard_normal((HEADS, KEYS, WIDTH))}


def test_what_attends_to_nothing_is_0_behind_the_product() -> None:
    term = MatMul()(cleared(Softmax(2)(S)), V)
    made = Clearing().of(term)
    assert made is not None
    (clears,) = (t for t in subterms(made) if isinstance(t.operator, Where))
    assert clears.shape == (HEADS, ROWS, WIDTH)
    rng = np.random.default_rng(0)
    given = drawn(rng)
    given[S][0, 2] = given[S][1, 4] = given[S][1, 0, :3] = -np.inf
    with np.errstate(invalid="ignore"):
        found, wanted = (evaluate(t, FLOAT, given) for t in (made, term))
    np.testing.assert_array_equal(found, wanted)
    assert not found[0, 2].any()
    assert found[1, 0].all()


def test_what_is_no_number_in_what_is_multiplied_stays_so_in_rows_that_attend() -> None:
    made = Clearing().of(MatMul()(cleared(Softmax(2)(S)), V))
    assert made is not None
    rng = np.random.default_rng(0)
    given = drawn(rng)
    given[V][1, 3] = np.nan
    found = evaluate(made, FLOAT, given)
    assert np.isnan(found[1]).all()
    assert np.isfinite(found[0]).all()


@pytest.mark.parametrize("term", LEFT.values(), ids=LEFT)
def test_else_it_is_left(term: Term) -> None:
    assert Clearing().of(term) is None


def test_a_search_tries_it() -> None:
    assert any(isinstance(r, Less) and r.name == Clearing.name for r in rewrites_of((), ("gelu",)))
