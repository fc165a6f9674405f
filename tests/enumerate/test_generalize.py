"""Equations found at one size, stated over symbols: as generally as they prove."""

from __future__ import annotations

import pytest

from superopt.demands import assuming
from superopt.dim import symbol
from superopt.enumerate.generality import LADDER
from superopt.enumerate.generalize import generalized
from superopt.enumerate.typed import typed
from superopt.operators.constant import Band
from superopt.operators.conv import Conv
from superopt.operators.layout import Expand, Reshape
from superopt.operators.matmul import MatMul
from superopt.operators.padding import Pad
from superopt.operators.picks import Slice
from superopt.operators.pointwise import Add, Relu
from superopt.operators.reduce import AvgPool
from superopt.operators.reductions import Mean
from superopt.rules.match import rewrites
from superopt.rules.rule import Rule
from superopt.term import Term, make, subterms, variable
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


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("group", [1, 2])
def test_zeros_around_a_kernel_are_as_many_as_it_has_pads_less(stride: int, group: int) -> None:
    """Found of 3×3 beside 1×1, stated of any kernel of which all pads are at most those of the other."""
    x = variable("x", (7, 3 * group, 8, 9))
    large, small = variable("y", (10, 3, 3, 3)), variable("z", (10, 3, 1, 1))
    wide, narrow = (Conv((stride, stride), (p, p, p, p), group=group) for p in (1, 0))
    rule = proved_first(
        Add()(wide(x, large), narrow(x, small)), wide(x, Add()(large, Pad((0, 0, 1, 1, 0, 0, 1, 1))(small)))
    )
    assert {c.relation for c in rule.conditions} == {"<="}
    assert len(rule.conditions) == 2
    image = variable("x", (1, 4 * group, 32, 32))
    kernels = variable("k", (6, 4, 7, 5)), variable("l", (6, 4, 3, 5))
    given = Add()(
        Conv((stride, stride), (3, 2, 3, 2), group=group)(image, kernels[0]),
        Conv((stride, stride), (1, 2, 1, 2), group=group)(image, kernels[1]),
    )
    (made,) = rewrites(rule, given)
    assert [t.operator.pads for t in subterms(made) if isinstance(t.operator, Pad)] == [(0, 0, 2, 0, 0, 0, 2, 0)]


def test_pads_that_kernels_share_may_differ_before_and_after_an_axis() -> None:
    """Found of 3×3 beside 3×1, of which rows have the same pads: those are any, as for what looks back alone."""
    x, large, small = variable("x", (7, 3, 8, 9)), variable("y", (10, 3, 3, 3)), variable("z", (10, 3, 3, 1))
    wide, narrow = Conv((1, 1), (1, 1, 1, 1)), Conv((1, 1), (1, 0, 1, 0))
    rule = proved_first(
        Add()(wide(x, large), narrow(x, small)), wide(x, Add()(large, Pad((0, 0, 0, 1, 0, 0, 0, 1))(small)))
    )
    given = Add()(Conv((1, 1), (2, 1, 0, 1))(x, large), Conv((1, 1), (2, 0, 0, 0))(x, small))
    (made,) = rewrites(rule, given)
    assert [t.operator.name for t in subterms(made) if not t.is_variable] == ["pad", "add", "conv"]


def test_what_solves_more_than_must_be_equal_is_stated_only_where_it_was_found() -> None:
    """Of 7 and 8 rows by twos there are as many, and no rule about equal numbers of rows says so."""
    x, y, z = variable("x", (7, 3, 8, 8)), variable("y", (5, 3, 3, 3)), variable("z", (5, 3, 2, 2))
    source = Add()(Conv((2, 2), (1, 1, 1, 1))(x, y), Conv((2, 2), (0, 0, 0, 0))(x, z))
    target = Conv((2, 2), (1, 1, 1, 1))(x, Add()(y, Pad((0, 0, 1, 1, 0, 0, 0, 0))(z)))
    assert source.shape == target.shape
    stated = [rule for g in LADDER if (rule := generalized(source, target, g)) is not None]
    assert stated
    for rule in stated:
        assert target in set(rewrites(rule, source))


def test_a_target_is_stated_without_what_does_nothing() -> None:
    x, y = variable("x", (7, 6, 8, 9)), variable("y", (5, 6, 3, 3))
    conv = Conv((1, 1), (2, 2, 2, 2))
    zeros = Pad((0, 0, 1, 1, 0, 0, 1, 1))
    forms = [generalized(Relu()(Relu()(x)), Slice(1, 0, 6)(Relu()(x)), g) for g in LADDER]
    assert [op for op in forms if op is not None]
    assert {t.operator.name for rule in forms if rule is not None for t in subterms(*rule.target)} == {
        "variable",
        "relu",
    }
    twice = generalized(conv(x, zeros(zeros(y))), conv(x, zeros(Slice(0, 0, 5)(zeros(y)))), LADDER[-1])
    assert twice is not None
    assert sum(isinstance(t.operator, Pad) for t in subterms(*twice.target)) == 1


def test_windows_that_move_by_a_symbol_are_of_one_size_where_the_results_must_be() -> None:
    """Their sizes are quotients, of which no symbol can be told but by what is divided."""
    stride = symbol("s")
    conv = Conv((stride, stride), (1, 1, 1, 1))
    with assuming():
        x = variable("x", map(symbol, "nchw"))
        sides = (conv(x, variable("y", map(symbol, "ocij"))), conv(x, variable("z", map(symbol, "ocpq"))))
        typed_sides = typed(*sides, by_numerators=True)
    windows = [{str(side.inputs[1].shape[2:]) for side in both} for both in (sides, typed_sides)]
    assert [len(found) for found in windows] == [2, 1]
