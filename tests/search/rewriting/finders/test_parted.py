"""Sums of what is joined and weighed are sums of parts, exactly; others stay."""

from __future__ import annotations

from functools import reduce

import pytest

from superopt.dim import Shape
from superopt.operators.layout import Concat, Expand, Reshape
from superopt.operators.pointwise import Add, Mul
from superopt.operators.reductions import Sum
from superopt.search.rewriting.finders.parted import MOST, Parting
from superopt.search.rewriting.rewrites import Less, rewrites_of
from superopt.term import Term, subterms, variable
from tests.operators.definitions.equality import assert_equal

HEADS, CHANNELS, QUERIES, LEVELS, POINTS = 2, 3, 5, 4, 6
ALL = (HEADS, CHANNELS, QUERIES, LEVELS * POINTS)
WEIGHTS = Expand((0, 2, 3), ALL)(variable("w", (HEADS, QUERIES, LEVELS * POINTS)))


def level(i: int, shape: Shape = (HEADS, CHANNELS, QUERIES, POINTS)) -> Term:
    return variable(f"x{i}", shape)


def joined(axis: int, parts: list[Term]) -> Term:
    return reduce(lambda a, b: Concat(axis)(a, b), parts)


STACK = joined(3, [Reshape((HEADS, CHANNELS, QUERIES, 1, POINTS))(level(i)) for i in range(LEVELS)])
ROWS = joined(1, [level(i, (QUERIES, POINTS, CHANNELS)) for i in range(LEVELS)])
FOUND = {
    "stacked": Sum((3,))(Mul()(Reshape(ALL)(STACK), WEIGHTS)),
    "weights first": Sum((3,))(Mul()(WEIGHTS, Reshape(ALL)(STACK))),
    "joined": Sum((1,))(Mul()(ROWS, variable("v", ROWS.shape))),
}
UNEVEN = Concat(1)(level(0, (QUERIES, 2, CHANNELS)), level(1, (QUERIES, 3, CHANNELS)))
MANY = joined(0, [level(i, (1, CHANNELS)) for i in range(MOST + 1)])
LEFT = {
    "along another axis": Sum((2,))(Mul()(ROWS, variable("v", ROWS.shape))),
    "nothing joined": Sum((1,))(Mul()(variable("x", ROWS.shape), variable("v", ROWS.shape))),
    "not weighed": Sum((1,))(ROWS),
    "of several sizes": Sum((1,))(Mul()(UNEVEN, variable("v", UNEVEN.shape))),
    "of many parts": Sum((0,))(Mul()(MANY, variable("v", MANY.shape))),
}


@pytest.mark.parametrize("term", FOUND.values(), ids=FOUND)
def test_parts_are_weighed_and_added_up_exactly(term: Term) -> None:
    made = assert_equal(Parting().of(term), term)
    assert not any(isinstance(t.operator, Concat) for t in subterms(made))
    assert sum(isinstance(t.operator, Sum) for t in subterms(made)) == 1
    assert sum(isinstance(t.operator, Add) for t in subterms(made)) == LEVELS - 1


@pytest.mark.parametrize("term", LEFT.values(), ids=LEFT)
def test_else_it_is_left(term: Term) -> None:
    assert Parting().of(term) is None


def test_a_search_tries_it() -> None:
    assert any(isinstance(r, Less) and r.name == Parting.name for r in rewrites_of((), ("gelu",)))
