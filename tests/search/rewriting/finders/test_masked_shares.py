"""Shares that are cleared where their scores are masked by −∞ come of a sum and are multiplied, to the bit."""

from __future__ import annotations

import math

import numpy as np
import pytest

from superopt.arithmetic.carrier import Array
from superopt.arithmetic.floats import FLOAT
from superopt.evaluate import evaluate
from superopt.operators.constant import filled
from superopt.operators.layout import Expand, Transpose
from superopt.operators.logic import Where
from superopt.operators.matmul import MatMul
from superopt.operators.normalize import Softmax
from superopt.operators.pointwise import Add, Div
from superopt.search.rewriting.finders.masked import Masking
from superopt.search.rewriting.finders.masked_shares import Remasking
from superopt.search.rewriting.rewrites import Less, rewrites_of
from superopt.term import TRUTH, Term, subterms, variable

HEADS, ROWS, KEYS = 2, 5, 6
SHAPE = (HEADS, ROWS, KEYS)
Q, K = (variable(name, (HEADS, rows, 3), "float32") for name, rows in (("q", ROWS), ("k", KEYS)))
S = Div()(MatMul()(Q, Transpose((0, 2, 1))(K)), filled(2.0, SHAPE))
M = variable("m", (ROWS, KEYS), TRUTH)
C, OTHER = (Expand((1, 2), SHAPE)(v) for v in (M, variable("n", (ROWS, KEYS), TRUTH)))


def number(value: float) -> Term:
    return filled(value, SHAPE)


def masked(scores: Term = S, low: float = -math.inf, c: Term = C) -> Term:
    return Where()(c, number(low), scores)


SHARES = {
    "chosen": Where()(C, number(0.0), Softmax(2)(masked())),
    "added": Where()(C, number(0.0), Softmax(2)(Add()(S, masked(number(0.0))))),
    "kept": Where()(C, Softmax(2)(Where()(C, S, number(-math.inf))), number(0.0)),
}
LEFT = {
    "another mask": Where()(OTHER, number(0.0), Softmax(2)(masked())),
    "what is not masked": Where()(C, Softmax(2)(masked()), number(0.0)),
    "no shares": Where()(C, number(0.0), masked()),
    "another number": Where()(C, number(1.0), Softmax(2)(masked())),
    "infinity": Where()(C, number(0.0), Softmax(2)(masked(low=math.inf))),
    "what is given": Where()(C, number(0.0), Softmax(2)(masked(variable("s", SHAPE, "float32")))),
    "more than a mask added": Where()(C, number(0.0), Softmax(2)(Add()(S, masked(number(1.0))))),
}


def drawn(seed: int) -> dict[Term, Array]:
    """Some are masked, of one row all, and of another none."""
    rng = np.random.default_rng(seed)
    mask = rng.integers(0, 2, M.shape).astype(bool)
    mask[0], mask[1] = True, False
    return {M: mask, **{v: 30.0 * rng.standard_normal(v.shape) for v in (Q, K)}}


@pytest.mark.parametrize("term", SHARES.values(), ids=SHARES)
def test_shares_are_the_same_to_the_bit_also_where_all_are_masked(term: Term) -> None:
    made = Remasking().of(term)
    assert made is not None
    assert made.type == term.type
    given = drawn(0)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(evaluate(made, FLOAT, given), evaluate(term, FLOAT, given))


def test_what_chooses_is_of_the_mask_alone() -> None:
    made = Remasking().of(SHARES["chosen"])
    assert made is not None
    (chosen,) = (t for t in subterms(made) if isinstance(t.operator, Where))
    assert S not in subterms(chosen)


def test_shares_of_what_is_masked_by_a_finite_number_are_multiplied_by_the_mask() -> None:
    term = Where()(C, number(0.0), Softmax(2)(masked(low=-1e4)))
    made = Masking().of(term)
    assert made is not None
    assert Remasking().of(term) is None
    given = drawn(1)
    np.testing.assert_array_equal(evaluate(made, FLOAT, given), evaluate(term, FLOAT, given))


@pytest.mark.parametrize("term", LEFT.values(), ids=LEFT)
def test_else_they_are_left(term: Term) -> None:
    assert Remasking().of(term) is None


def test_a_search_tries_it() -> None:
    assert Less(Remasking) in rewrites_of((), ["matmul"])
