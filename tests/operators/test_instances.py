"""Examples of terms at small sizes: well formed, different, the same for the same seed, and found where rare."""

from __future__ import annotations

import pytest

from superopt.demands import assuming
from superopt.dim import Condition, symbol
from superopt.operators import CATALOGUE
from superopt.operators.instances import small_instances
from superopt.operators.layout import Reshape
from superopt.operators.picks import Slice
from superopt.operators.pointwise import Add
from superopt.operators.symbolic import conditions
from superopt.term import subterms, variable
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
