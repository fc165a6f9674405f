"""Channels that are blended by numbers are one product, exactly."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest

from superopt.arithmetic.field import FIELD
from superopt.demands import assuming
from superopt.dim import Dim, symbol
from superopt.evaluate import evaluate, sample
from superopt.operators.clip import Clip
from superopt.operators.constant import filled
from superopt.operators.differences import Sub
from superopt.operators.layout import Concat, Reshape
from superopt.operators.matmul import MatMul
from superopt.operators.picks import Slice
from superopt.operators.pointwise import Add, Mul
from superopt.search.rewriting.finders.blended import WIDEST, Blending
from superopt.search.rewriting.rewrites import Less, rewrites_of
from superopt.term import Term, subterms, variable

N, HEIGHT, WIDTH = 2, 4, 5
WEIGHTS = [[3, 5, 7], [2, 0, 11], [1, 13, 6]]


def picture(channels: int = 3, count: Dim = N) -> Term:
    return variable("x", (count, channels, HEIGHT, WIDTH))


def channel(x: Term, number: int, axis: int = 1, kept: bool = True) -> Term:
    one = Slice(axis, number, number + 1)(x)
    return one if kept else Reshape((*x.shape[:axis], *x.shape[axis + 1 :]))(one)


def scaled(x: Term, by: float) -> Term:
    return Mul()(x, filled(float(by), x.shape))


def blend(x: Term, weights: list[int], axis: int = 1, kept: bool = True) -> Term:
    return reduce(Add(), [scaled(channel(x, c, axis, kept), w) for c, w in enumerate(weights)])


def colours(x: Term, axis: int = 1) -> Term:
    return reduce(Concat(axis), [blend(x, weights, axis) for weights in WEIGHTS])


def differences(x: Term) -> Term:
    """As YCbCr is written: of a channel and the sum of all, and a number that is added."""
    y = blend(x, WEIGHTS[0])
    others = [scaled(Sub()(channel(x, c), y), 3) for c in (2, 0)]
    return reduce(Concat(1), [y, *(Add()(d, filled(5.0, d.shape)) for d in others)])


LAST = variable("x", (N, HEIGHT, WIDTH, 3))
BLENDED = {
    "colours": colours(picture()),
    "colours that stand last": colours(LAST, 3),
    "grey": blend(picture(), WEIGHTS[0]),
    "grey, and a number": Add()(blend(picture(), WEIGHTS[0]), filled(5.0, (N, 1, HEIGHT, WIDTH))),
    "grey without channels, and a number": Add()(
        blend(picture(), WEIGHTS[0], kept=False), filled(5.0, (N, HEIGHT, WIDTH))
    ),
    "grey, without channels": blend(picture(), WEIGHTS[0], kept=False),
    "grey of what stands last": blend(LAST, WEIGHTS[0], 3, kept=False),
    "differences, and numbers that are added": differences(picture()),
    "rows": colours(variable("x", (N, 3))),
    "what is bent before": colours(Clip()(picture(), filled(0.0, ()), filled(1.0, ()))),
}


def agree(made: Term | None, term: Term) -> None:
    assert made is not None
    assert made.type == term.type
    assert sum(isinstance(t.operator, MatMul) for t in subterms(made)) == 1
    with assuming():
        values = sample((made, term), FIELD, 0)
        np.testing.assert_array_equal(evaluate(made, FIELD, values), evaluate(term, FIELD, values))


@pytest.mark.parametrize("name", [name for name in BLENDED if name != "what is bent before"])
def test_channels_are_blended_by_one_matrix(name: str) -> None:
    agree(Blending().of(BLENDED[name]), BLENDED[name])


def test_what_is_no_blend_stays_below() -> None:
    made = Blending().of(BLENDED["what is bent before"])
    assert made is not None
    (product,) = (t for t in subterms(made) if isinstance(t.operator, MatMul))
    assert sum(isinstance(t.operator, Clip) for t in subterms(product)) == 1


def test_there_may_be_as_many_pictures_as_a_symbol_stands_for() -> None:
    with assuming():
        term = colours(picture(count=symbol("n")))
        made = Blending().of(term)
    assert made is not None
    assert made.type == term.type


def test_channels_that_come_first_are_not_moved() -> None:
    made = Blending().of(BLENDED["colours"])
    assert made is not None
    (product,) = (t for t in subterms(made) if isinstance(t.operator, MatMul))
    assert product.inputs[1] is Reshape((N, 3, HEIGHT * WIDTH))(picture())


X = picture()
LEFT = {
    "few steps": Add()(channel(X, 0), channel(X, 1)),
    "many channels": blend(picture(WIDEST + 1), list(range(1, WIDEST + 2))),
    "of two pictures": Add()(blend(X, WEIGHTS[0]), blend(variable("y", X.shape), WEIGHTS[1])),
    "multiplied by each other": Add()(Mul()(channel(X, 0), channel(X, 1)), Mul()(channel(X, 1), channel(X, 2))),
}


@pytest.mark.parametrize("name", LEFT)
def test_what_is_no_blend_of_few_channels_is_left(name: str) -> None:
    assert Blending().of(LEFT[name]) is None


def test_searches_look_for_it() -> None:
    assert Less(Blending) in rewrites_of((), ["relu"])
