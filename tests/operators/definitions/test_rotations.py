"""Rotations by tables of whole rows are by half of each, where both halves are equal, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from superopt.arithmetic.field import FIELD
from superopt.evaluate import evaluate, sample
from superopt.operators.attention.rotary import turned
from superopt.operators.definitions.rotations import as_rotary, first_half
from superopt.operators.differences import Neg
from superopt.operators.layout import Concat, Expand, Reshape, Transpose
from superopt.operators.matmul import MatMul
from superopt.operators.picks import Slice
from superopt.operators.pointwise import Add, Mul
from superopt.operators.rearrange import Gather
from superopt.search.rewriting.matching import Matching
from superopt.search.rewriting.rewrites import Unfold, rewrites_of
from superopt.term import Graph, Term, variable

X = variable("x", (2, 3, 5, 4))
HALF = {name: variable(name, (2, 5, 2)) for name in ("cos", "sin")}

TABLES: dict[str, Callable[[str], Term]] = {
    "over all": lambda n: Expand((0, 2, 3), X.shape)(Concat(2)(HALF[n], HALF[n])),
    "with an axis for heads": lambda n: Expand((0, 2, 3), X.shape)(
        Reshape((2, 5, 4))(Reshape((2, 1, 5, 4))(Concat(2)(HALF[n], HALF[n])))
    ),
    "of the first batch": lambda n: Expand((2, 3), X.shape)(
        Reshape((5, 4))(Slice(0, 0, 1)(Concat(2)(HALF[n], HALF[n])))
    ),
    "of numbers, scaled": lambda n: Expand((2, 3), X.shape)(
        Mul()(_twice(variable(n, (5, 2))), Expand((), (5, 4))(variable("scale", ())))
    ),
    "of one row": lambda n: Expand((3,), X.shape)(_twice(variable(n, (2,)))),
    "joined before it is computed": lambda n: Expand((0, 2, 3), X.shape)(Neg()(_twice(HALF[n]))),
    "turned around before": lambda n: Expand((2, 3), X.shape)(Transpose((1, 0))(Concat(0)(*[variable(n, (2, 5))] * 2))),
    "by a product": lambda n: Expand((2, 3), X.shape)(MatMul()(variable("p", (5, 1)), _twice(variable(n, (1, 2))))),
}

OTHERS: dict[str, Callable[[str], Term]] = {
    "other halves": lambda n: Expand((0, 2, 3), X.shape)(Concat(2)(HALF[n], variable("o", (2, 5, 2)))),
    "a whole row": lambda n: Expand((0, 2, 3), X.shape)(variable(n, (2, 5, 4))),
    "one for each head": lambda n: Concat(3)(*[variable(n, (2, 3, 5, 2))] * 2),
}


def _twice(half: Term) -> Term:
    return Concat(half.type.rank - 1)(half, half)


def summed(cos: Term, sin: Term, quarter: Term) -> list[Term]:
    """A rotation, in all orders of its factors and summands."""
    straight = [Mul()(X, cos), Mul()(cos, X)]
    across = [Mul()(quarter, sin), Mul()(sin, quarter)]
    return [Add()(*pair) for a in straight for b in across for pair in ((a, b), (b, a))]


@pytest.mark.parametrize("name", TABLES)
def test_a_rotation_by_tables_of_a_half_twice_is_by_these_halves(name: str) -> None:
    cos, sin = (TABLES[name](n) for n in HALF)
    for term in summed(cos, sin, turned(X)):
        ((made,),) = Unfold("add as rotary").at((term,))
        values = sample((term,), FIELD, 0)
        assert made.operator.name == "rotary"
        np.testing.assert_array_equal(evaluate(made, FIELD, values), evaluate(term, FIELD, values))


@pytest.mark.parametrize("name", TABLES)
def test_a_search_finds_rotations_as_deep_as_exporters_make_their_tables(name: str) -> None:
    term = summed(TABLES[name]("cos"), TABLES[name]("sin"), turned(X))[0]
    matching = Matching(rewrites_of([], ["add as rotary"]))
    found = [new for a in matching.applications(Graph((), (term,))) for new in a.new.values()]
    assert as_rotary(Add(), *term.inputs) in found


@pytest.mark.parametrize("name", OTHERS)
def test_tables_that_may_differ_in_their_halves_or_by_heads_stay(name: str) -> None:
    for term in summed(OTHERS[name]("cos"), OTHERS[name]("sin"), turned(X)):
        assert as_rotary(Add(), *term.inputs) is None


def test_one_table_of_a_half_twice_is_not_enough() -> None:
    whole, half = OTHERS["a whole row"]("sin"), TABLES["over all"]("cos")
    for tables in ((half, whole), (whole, half)):
        for term in summed(*tables, turned(X)):
            assert as_rotary(Add(), *term.inputs) is None


def test_what_is_not_turned_by_a_quarter_stays() -> None:
    cos, sin = (TABLES["over all"](n) for n in HALF)
    halves = Slice(3, 0, 2)(X), Slice(3, 2, 4)(X)
    for other in (
        Concat(3)(halves[1], halves[0]),
        Concat(3)(Neg()(halves[0]), halves[1]),
        Concat(3)(halves[1], Neg()(halves[0])),
        turned(Neg()(X)),
    ):
        for term in summed(cos, sin, other):
            assert as_rotary(Add(), *term.inputs) is None


def test_a_rotation_of_doubles_stays() -> None:
    x, half = variable("x", (1, 1, 1, 4), "float64"), variable("h", (2,), "float64")
    table = Expand((3,), x.shape)(_twice(half))
    assert as_rotary(Add(), Mul()(x, table), Mul()(turned(x), table)) is None


def test_a_row_of_an_odd_width_has_no_halves() -> None:
    rows = Slice(3, 0, 3)(X)
    term = Add()(Mul()(rows, rows), Mul()(rows, rows))
    assert as_rotary(Add(), *term.inputs) is None
    assert first_half(Expand((), (3,))(variable("n", ())), 0) is None


def test_rows_that_are_looked_up_stand_twice_where_those_of_the_table_do() -> None:
    half, rows = variable("half", (6, 2)), variable("i", (2, 5), "int64")
    table = Gather(0)(_twice(half), rows)
    made = first_half(table, 2)
    assert made is Gather(0)(half, rows)
    assert first_half(Gather(1)(_twice(half), rows), 2) is None, "places of halves are looked up"
