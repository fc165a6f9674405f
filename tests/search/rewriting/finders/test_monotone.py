"""The largest of several values is found before what grows with them, exactly, and not before what does not."""

from __future__ import annotations

import numpy as np
import pytest

from superopt.arithmetic.floats import FLOAT
from superopt.arithmetic.order import ORDER
from superopt.demands import assuming
from superopt.dim import symbol
from superopt.evaluate import evaluate, sample
from superopt.operators.activations import Celu, Elu, Gelu, HardSigmoid, LeakyRelu, Selu, Softsign, Swish
from superopt.operators.clip import Clip
from superopt.operators.constant import filled
from superopt.operators.differences import Abs, Neg, Sub
from superopt.operators.extrema import Max, Min
from superopt.operators.functions import Erf, Exp, Sigmoid, Softplus, Tanh
from superopt.operators.layout import Expand, Reshape, Transpose
from superopt.operators.pointwise import Add, Div, Mul, Relu, Sqrt
from superopt.operators.reductions import Largest, Reduction, Smallest, Sum
from superopt.search.rewriting.finders.monotone import MOST, Extremes
from superopt.search.rewriting.rewrites import Less, rewrites_of
from superopt.term import Term, subterms, variable

SHAPE = (2, 3, 4, 5)
X = variable("x", SHAPE)
LOW, HIGH = variable("low", ()), variable("high", ())
OWN = Expand((0, 1, 3), SHAPE)(variable("y", (2, 3, 5)))
BIAS = Expand((3,), SHAPE)(variable("b", (5,)))
POSITIVE = Expand((3,), SHAPE)(Add()(Relu()(variable("c", (5,))), filled(1.0, (5,))))
EACH = Expand((2,), SHAPE)(variable("e", (4,)))
KINDS: list[type[Reduction]] = [Largest, Smallest]

EXACT = {
    "a relu": Relu()(X),
    "the other way": Neg()(X),
    "a sum": Add()(OWN, X),
    "a difference": Sub()(X, OWN),
    "the other way around": Sub()(OWN, X),
    "a bound of each": Max()(Min()(X, OWN), BIAS),
    "bounds": Clip()(X, LOW, HIGH),
    "a positive factor": Mul()(X, POSITIVE),
    "a negative number": Mul()(filled(-2.0, SHAPE), X),
    "several": Relu()(Add()(Sub()(OWN, Relu()(X)), BIAS)),
    "behind what is moved": Relu()(Transpose((3, 0, 2, 1))(Add()(X, OWN))),
    "behind a reshape": Relu()(Reshape((1, 6, 4, 5))(Add()(X, BIAS))),
}  # fmt: skip
SMOOTH = (Sigmoid(), Tanh(), Exp(), Erf(), Softplus(), Softsign())
ACTIVATIONS = (LeakyRelu(0.2), Elu(0.5), Selu(), Celu(), HardSigmoid())
BENT = {str(op): op(X) for op in (*SMOOTH, *ACTIVATIONS)} | {
    "a quotient by a number": Div()(X, filled(3.0, SHAPE)),
    "a quotient by a negative number": Div()(X, filled(-3.0, SHAPE)),
    "a root": Sqrt()(Mul()(Relu()(X), POSITIVE)),
}  # fmt: skip
LEFT = {
    "nothing is computed": Transpose((0, 2, 3, 1))(X),
    "it falls and grows": Gelu()(X),
    "it falls first": Swish()(X),
    "magnitudes": Abs()(X),
    "a slope the other way": LeakyRelu(-0.2)(X),
    "a factor of unknown sign": Mul()(X, BIAS),
    "a quotient of unknown sign": Div()(X, BIAS),
    "a quotient by what may be zero": Div()(X, POSITIVE),
    "divided by it": Div()(POSITIVE, X),
    "what differs is added": Add()(X, EACH),
    "of two": Add()(X, Relu()(X)),
    "a root of what may be negative": Sqrt()(X),
}  # fmt: skip


def axis_of(term: Term) -> int:
    """The axis of four places."""
    return term.shape.index(4)


def agree(made: Term | None, term: Term, exact: bool) -> None:
    assert made is not None
    assert made.type == term.type
    carrier = ORDER if exact else FLOAT
    for seed in range(4):
        values = sample((made, term), carrier, seed)
        one, other = (evaluate(t, carrier, values) for t in (made, term))
        np.testing.assert_allclose(one, other, rtol=0 if exact else 1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", EXACT)
def test_what_grows_or_falls_is_computed_of_one(name: str, kind: type[Reduction]) -> None:
    term = kind.of((axis_of(EXACT[name]),))(EXACT[name])
    made = Extremes().of(term)
    agree(made, term, exact=True)
    assert made is not None
    assert [t.inputs[0] for t in subterms(made) if isinstance(t.operator, Reduction)] == [X]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", BENT)
def test_what_is_bent_is_of_one(name: str, kind: type[Reduction]) -> None:
    term = kind.of((2,))(BENT[name])
    made = Extremes().of(term)
    agree(made, term, exact=False)
    assert made is not None
    assert not isinstance(made.operator, Reduction)


@pytest.mark.parametrize("name", LEFT)
def test_what_may_grow_or_fall_stays(name: str) -> None:
    assert Extremes().of(Largest((axis_of(LEFT[name]),))(LEFT[name])) is None


def test_along_several_axes_what_is_the_same_along_all_of_them_is_passed() -> None:
    agree(Extremes().of(both := Largest((1, 2))(Relu()(Add()(X, BIAS)))), both, exact=True)
    assert Extremes().of(Largest((1, 2))(Add()(X, OWN))) is None


def test_a_sum_is_not_the_largest() -> None:
    assert Extremes().of(Sum((2,))(Relu()(X))) is None


def test_of_a_long_chain_the_last_steps_are_passed() -> None:
    term = X
    for _ in range(2 * MOST):
        term = Relu()(Add()(term, BIAS))
    agree(Extremes().of(whole := Largest((2,))(term)), whole, exact=True)


def test_how_many_values_there_are_may_be_a_symbol() -> None:
    n, k = symbol("n"), symbol("k")
    with assuming():
        x, y = variable("x", (n, k, 8)), variable("y", (n, 8))
        made = Extremes().of(Largest((1,))(Relu()(Add()(x, Expand((0, 2), (n, k, 8))(y)))))
    assert made is not None
    assert isinstance(made.operator, Relu)


def test_the_search_has_it_where_it_has_definitions() -> None:
    assert Less(Extremes) in rewrites_of([], ["gelu"])
    assert Less(Extremes) not in rewrites_of([], [])
