"""Equations found at one size, stated over symbols: as generally as they prove."""

from __future__ import annotations

import pytest

from superopt.enumerate.generalize import LADDER, generalized
from superopt.operators.constant import Band
from superopt.operators.layout import Expand, Reshape
from superopt.operators.linear import Conv, MatMul
from superopt.operators.padding import Pad
from superopt.operators.reduce import AvgPool
from superopt.operators.reductions import Mean
from superopt.rules.match import rewrites
from superopt.rules.rule import Rule
from superopt.term import Term, make, variable
from superopt.verify.check import verify
from superopt.verify.prove import Proved

X, Y, Z = variable("x", (3, 7)), variable("y", (7, 8)), variable("z", (8, 9))


def proved_first(source: Term, target: Term) -> Rule:
    """The most general form of an equation that proves."""
    forms = (generalized(source, target, generality) for generality in LADDER)
    return next(form for form in forms if form is not None and isinstance(verify(form), Proved))


@pytest.mark.parametrize("generality", LADDER, ids=str)
def test_a_generalized_rule_has_the_equation_it_came_from_as_an_instance(generality: object) -> None:
    left, right = MatMul()(MatMul()(X, Y), Z), MatMul()(X, MatMul()(Y, Z))
    rule = generalized(left, right, generality)  # type: ignore[arg-type]
    assert rule is not None
    assert right in set(rewrites(rule, left))
    assert not any(isinstance(d, int) for v in rule.given for d in v.shape)


def test_groups_are_symbols_where_all_convolutions_have_as_many_though_their_pads_differ() -> None:
    x, k = variable("x", (7, 6, 8, 9)), variable("k", (10, 3, 1, 1))
    wide = Conv((1, 1), (1, 1, 1, 1), group=2)(x, Pad((0, 0, 1, 1, 0, 0, 1, 1))(k))
    rule = proved_first(Conv((1, 1), (0, 0, 0, 0), group=2)(x, k), wide)
    assert str(rule.source[0].operator.group) == "c"  # type: ignore[attr-defined]


def test_windows_of_a_pool_and_of_a_convolution_are_generalized_together() -> None:
    x = variable("x", (7, 4, 8, 9))
    kernel = Expand((2, 3), (4, 1, 3, 3))(Reshape((3, 3))(Mean((0,))(make(Band(9)))))
    rule = proved_first(
        AvgPool((3, 3), (1, 1), (1, 1, 1, 1), whole=1)(x), Conv((1, 1), (1, 1, 1, 1), group=4)(x, kernel)
    )
    (pool,) = (t.operator for t in rule.source)
    assert isinstance(pool, AvgPool)
    assert not any(isinstance(d, int) for d in (*pool.kernel, *pool.pads))


def test_groups_of_one_channel_each_are_as_many_as_channels_though_windows_stay() -> None:
    """The pool asks for more than the convolution states, so that with any windows it does not follow."""
    x = variable("x", (7, 4, 8, 9))
    kernel = Expand((2, 3), (4, 1, 3, 3))(Reshape((3, 3))(Mean((0,))(make(Band(9)))))
    rule = proved_first(
        Conv((1, 1), (1, 1, 1, 1), group=4)(x, kernel), AvgPool((3, 3), (1, 1), (1, 1, 1, 1), whole=1)(x)
    )
    (conv,) = (t.operator for t in rule.source)
    assert isinstance(conv, Conv)
    assert str(conv.group) == "c"
    assert conv.pads == (1, 1, 1, 1)


def test_attributes_that_are_neither_nothing_nor_as_by_default_are_symbols() -> None:
    """Zeros beside channels: how many is free, that there are none beside rows is not."""
    x, k = variable("x", (7, 3, 8, 9)), variable("k", (5, 3, 3, 3))
    conv, zeros = Conv((1, 1), (1, 1, 1, 1)), Pad((0, 0, 0, 0, 0, 2, 0, 0))
    for generality in LADDER:
        rule = generalized(zeros(conv(x, k)), conv(x, Pad((0, 0, 0, 0, 2, 0, 0, 0))(k)), generality)
        if rule is not None and isinstance(verify(rule), Proved):
            break
    assert generality.attributes == "set"
    assert rule is not None
    (source,) = rule.source
    assert isinstance(source.operator, Pad)
    assert [d for d in source.operator.pads if not isinstance(d, int)] == [source.operator.pads[5]]
