"""Equalities between sizes are solved for symbols, or contradict each other."""

from __future__ import annotations

import pytest

from superopt.dim import Condition, floor_div, symbol
from superopt.errors import ShapeError
from superopt.operators.solved_sizes import unify
from superopt.substitution import substitute_condition

M, K, N, R = map(symbol, "mknr")


def test_equalities_are_solved_for_what_is_not_kept() -> None:
    values, rest = unify([Condition("=", K, N), Condition("=", M + K, R), Condition("<=", K, M)], keep=["m", "n"])
    assert values["k"] is N
    assert values["r"] is M + N
    assert rest == [Condition("<=", N, M)]


def test_an_equality_that_cannot_hold_is_an_error() -> None:
    with pytest.raises(ShapeError, match="contradict"):
        unify([Condition("=", K, N), Condition("=", K, N + 1)])


def test_solutions_meet_the_equalities() -> None:
    asked = [Condition("=", M, floor_div(K, 2)), Condition("=", K, N + R), Condition("=", R, 2 * N)]
    values, rest = unify(asked)
    assert not rest
    assert all(substitute_condition(c, values) is True for c in asked)


def test_an_equality_of_multiples_is_solved() -> None:
    values, rest = unify([Condition("=", K * 2 - 1, N * 4 + 5)], keep=["n"])
    assert {name: str(value) for name, value in values.items()} == {"k": "(+ (* 2 n) 3)"}
    assert not rest
