"""What is masked is multiplied by the mask instead, exactly, where it is made of products."""

from __future__ import annotations

import math

import numpy as np
import pytest

from superopt.arithmetic.field import FIELD
from superopt.arithmetic.floats import FLOAT
from superopt.evaluate import evaluate, sample
from superopt.operators.activations import LeakyRelu
from superopt.operators.constant import filled
from superopt.operators.differences import Abs, Neg
from superopt.operators.functions import Exp, Log, Softplus
from superopt.operators.layout import Expand, Transpose
from superopt.operators.logic import Not, Where
from superopt.operators.matmul import MatMul
from superopt.operators.pointwise import Add, Div, Relu
from superopt.search.rewriting.finders.masked import Masking
from superopt.search.rewriting.rewrites import Less, rewrites_of
from superopt.term import TRUTH, Term, subterms, variable

N = 4
X = variable("x", (N, N), "float32")
MASK, ROW = variable("m", (N, N), TRUTH), Expand((1,), (N, N))(variable("r", (N,), TRUTH))
FIXED = variable("f", (N, N), TRUTH, constant=True)
SCORES = MatMul()(X, variable("w", (N, N), "float32", constant=True))
SUM = Add()(SCORES, Transpose((1, 0))(SCORES))
LOW = -9e15


def number(value: float) -> Term:
    return filled(value, (N, N))


MASKED = {
    "scores": Where()(MASK, SCORES, number(LOW)),
    "a sum of scores": Where()(MASK, SUM, number(LOW)),
    "scores over a root": Where()(MASK, Div()(SUM, number(2.0)), number(LOW)),
    "the number where the mask is": Where()(MASK, number(1.5), SCORES),
    "columns": Where()(ROW, SUM, number(LOW)),
    "logarithms of what is above 0": Where()(MASK, Log()(Add()(Relu()(SCORES), number(0.5))), SUM),
    "absolute values": Where()(MASK, Neg()(Softplus()(Abs()(SCORES))), SUM),
    "a constant mask": Where()(FIXED, SCORES, number(LOW)),
    "one of two": Where()(MASK, SCORES, SUM),
    "columns of two": Where()(ROW, SCORES, SUM),
}
LEFT = {
    "an input": Where()(MASK, X, number(0.0)),
    "a quotient": Where()(MASK, Div()(X, SCORES), number(0.0)),
    "a sum with an input": Where()(MASK, Add()(SCORES, X), number(0.0)),
    "an exponential": Where()(MASK, Exp()(SCORES), number(0.0)),
    "infinity": Where()(MASK, SCORES, number(math.inf)),
    "one of scores and an input": Where()(MASK, SCORES, X),
    "one of scores and an exponential": Where()(MASK, Exp()(SCORES), SUM),
    "a logarithm of what may be 0": Where()(MASK, Log()(Relu()(SCORES)), SUM),
    "a logarithm of what may be below": Where()(MASK, Log()(Add()(SCORES, number(0.5))), SUM),
    "a logarithm beside 0": Where()(MASK, Log()(Add()(Relu()(SCORES), number(0.0))), SUM),
    "numbers alone": Where()(MASK, number(0.0), number(1.0)),
    "over zero": Where()(MASK, Div()(SCORES, number(0.0)), number(0.0)),
}


def found(term: Term) -> Term | None:
    return Masking().of(term)


def masks(seed: int) -> dict[Term, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {v: rng.integers(0, 2, v.shape) for v in (MASK, FIXED, ROW.inputs[0])}


@pytest.mark.parametrize("term", MASKED.values(), ids=MASKED)
def test_what_is_masked_is_multiplied_exactly(term: Term) -> None:
    made = found(term)
    assert made is not None
    assert made.type == term.type
    values = {**sample((term,), FIELD, 1), **masks(0)}
    np.testing.assert_array_equal(evaluate(made, FIELD, values), evaluate(term, FIELD, values))


@pytest.mark.parametrize("other", [number(LOW), SCORES], ids=["a number", "one of two"])
def test_floating_point_numbers_are_the_same_to_the_bit(other: Term) -> None:
    term = Where()(MASK, LeakyRelu(0.2)(SUM), other)
    made = found(term)
    assert made is not None
    values = {**sample((term,), FLOAT, 1), **masks(1)}
    np.testing.assert_array_equal(evaluate(made, FLOAT, values), evaluate(term, FLOAT, values))


def test_minus_infinity_is_added_to_what_is_finite() -> None:
    term = Where()(MASK, number(-math.inf), SUM)
    made = found(term)
    assert made is not None
    assert made.inputs[0] is SUM
    values = {**sample((term,), FLOAT, 1), **masks(1)}
    np.testing.assert_array_equal(evaluate(made, FLOAT, values), evaluate(term, FLOAT, values))


def test_what_chooses_is_the_same_for_all_that_is_masked() -> None:
    one, other = (found(Where()(MASK, x, number(LOW))) for x in (SCORES, SUM))
    assert one is not None
    assert other is not None
    chosen = {t for t in subterms(one) if isinstance(t.operator, Where)}
    assert chosen == {t for t in subterms(other) if isinstance(t.operator, Where)}
    assert len(chosen) == 1


def test_a_row_of_a_mask_is_repeated_as_numbers() -> None:
    made = found(MASKED["columns"])
    assert made is not None
    assert not any(isinstance(t.operator, Not) for t in subterms(made))
    assert Expand((1,), (N, N)) in {t.operator for t in subterms(made) if t.type.dtype == "float32"}


@pytest.mark.parametrize("term", LEFT.values(), ids=LEFT)
def test_else_it_is_left(term: Term) -> None:
    assert found(term) is None


def test_a_search_tries_it() -> None:
    assert Less(Masking) in rewrites_of((), ["matmul"])
