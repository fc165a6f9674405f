"""Examples of terms at small sizes: well formed, different, the same for the same seed, and found where rare."""

from __future__ import annotations

import pytest

from superopt.demands import assuming
from superopt.dim import Condition, floor_div, symbol
from superopt.errors import ShapeError
from superopt.operators import CATALOGUE
from superopt.operators.instances import all_symbols, conditions, resize, small_instances, unify
from superopt.operators.layout import Concat, Reshape
from superopt.operators.matmul import MatMul
from superopt.operators.picks import Slice
from superopt.operators.pointwise import Add
from superopt.substitution import substitute_condition
from superopt.term import Term, subterms, variable
from tests.operators.general import general_terms

M, K, N, R = map(symbol, "mknr")


@pytest.mark.parametrize("name", CATALOGUE)
def test_examples_are_well_formed_different_and_reproducible(name: str) -> None:
    for term in general_terms(name):
        found = [e for (e,) in small_instances((term,), (), count=5, seed=3)]
        assert found, term
        assert found == [e for (e,) in small_instances((term,), (), count=5, seed=3)]
        assert len(set(found)) == len(found)
        assert all(isinstance(d, int) and d >= 1 for e in found for t in subterms(e) for d in t.shape)
        assert all(not conditions(e) for e in found)


@pytest.mark.parametrize("name", ["conv", "maxpool", "slice", "matmul", "transpose"])
def test_examples_are_not_all_of_one_size(name: str) -> None:
    """A law that is wrong where sizes differ must meet such sizes."""
    term = general_terms(name)[-1]
    shapes = [e.inputs[0].shape for (e,) in small_instances((term,), (), count=8, seed=0)]
    assert len(set(shapes)) >= 6
    assert any(len(set(shape)) == len(shape) or len(set(shape)) >= 3 for shape in shapes)


def test_rare_sizes_are_found() -> None:
    """Six sizes of equal products, and a chain of cuts: hardly ever drawn, but a condition that fails is mended."""
    x = variable("x", (M, K, N))
    with assuming():
        reshaped = Reshape((R, symbol("s"), symbol("t")))(x)
        cut = Slice(0, symbol("a"), symbol("b"))(Slice(0, symbol("c"), symbol("d"))(x))
    for term in (reshaped, cut):
        assert len(list(small_instances((term,), (), count=10, seed=0))) == 10


def test_open_conditions_are_met() -> None:
    x = variable("x", (M, N))
    demands = [Condition("=", M, 2 * N), Condition("<=", 3, N)]
    found = list(small_instances((Add()(x, x),), demands, count=2, seed=0))
    assert found
    for (example,) in found:
        m, n = example.shape
        assert (m, n >= 3) == (2 * n, True)


def test_conditions_that_contradict_each_other_have_no_example() -> None:
    x = variable("x", (M, N))
    demands = [Condition("=", M, N), Condition("=", M, N + 1)]
    assert not list(small_instances((Add()(x, x),), demands, count=1, seed=0))


def test_what_the_inputs_must_meet_is_told() -> None:
    x, y = variable("x", (M, K)), variable("y", (N, R))
    with assuming():
        term = MatMul()(x, y)
    assert conditions(term) == [Condition("=", K, N)]
    assert all_symbols(term) == ["m", "k", "n", "r"]


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


def test_resizing_renews_variables_and_attributes() -> None:
    x, small = (variable("x", shape, constant=True) for shape in ((M, N), (2, 5)))
    with assuming():
        term: Term = Concat(1)(Slice(1, 0, K)(x), x)
    (sized,) = resize((term,), {"m": 2, "n": 5, "k": 3})
    assert sized.shape == (2, 8)
    assert sized is Concat(1)(Slice(1, 0, 3)(small), small)
