"""Sums and means along axes that others follow are products of a row, and of no others are they."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from superopt.arithmetic.field import FIELD
from superopt.arithmetic.floats import FLOAT
from superopt.demands import assuming
from superopt.dim import symbol
from superopt.evaluate import evaluate
from superopt.operators.definitions.sums import MOST_ROWS, by_a_product
from superopt.operators.matmul import MatMul
from superopt.operators.reductions import Mean, Reduction, Sum
from superopt.term import subterms, variable

KINDS: list[type[Reduction]] = [Mean, Sum]
SHAPES = st.lists(st.integers(1, 4), min_size=2, max_size=4)


@pytest.mark.parametrize("kind", KINDS)
@given(SHAPES, st.data())
def test_a_reduction_by_a_product_is_the_reduction(
    kind: type[Reduction], sizes: list[int], data: st.DataObject
) -> None:
    """Of random elements of a prime field: two that differ agree once in 2³⁰ times."""
    first = data.draw(st.integers(0, len(sizes) - 1))
    axes = tuple(range(first, data.draw(st.integers(first + 1, len(sizes)))))
    term = kind.of(axes)(x := variable("x", tuple(sizes)))
    made = by_a_product(term.operator, x)
    if made is None:
        assert np.prod(sizes[axes[0] : axes[-1] + 1]) == 1 or np.prod(sizes[axes[-1] + 1 :]) == 1
        return
    assert any(isinstance(t.operator, MatMul) for t in subterms(made))
    values = {x: np.random.default_rng(0).integers(0, 2**30, sizes).astype(FIELD.dtype)}
    np.testing.assert_array_equal(evaluate(made, FIELD, values), evaluate(term, FIELD, values))


@pytest.mark.parametrize("axes", [(1,), (0, 2), ()], ids=str)
def test_rows_that_lie_in_memory_one_after_the_other_stay_and_so_do_axes_apart(axes: tuple[int, ...]) -> None:
    shape = (3, 4, 5) if len(axes) > 1 else (3, 4)
    assert by_a_product(Mean(axes), variable("x", shape)) is None


def test_of_more_places_than_an_identity_may_have_it_stays() -> None:
    assert by_a_product(Sum((0,)), variable("x", (MOST_ROWS, 3))) is not None
    assert by_a_product(Sum((0,)), variable("x", (MOST_ROWS + 1, 3))) is None


def test_how_many_images_there_are_and_of_which_size_may_be_symbols() -> None:
    n, h = symbol("n"), symbol("h")
    x = variable("x", (n, 3, h, h))
    with assuming():
        made = by_a_product(Mean((1,)), x)
    assert made is not None
    assert str(made.shape) == str(Mean((1,))(x).shape)


def test_along_as_many_places_as_a_symbol_says_it_stays() -> None:
    assert by_a_product(Mean((1,)), variable("x", (2, symbol("c"), 4))) is None


def test_the_mean_over_channels_is_within_the_rounding_of_its_sum() -> None:
    x = variable("x", (1, 64, 8, 8))
    made = by_a_product(Mean((1,)), x)
    assert made is not None
    values = {x: np.random.default_rng(0).standard_normal((1, 64, 8, 8))}
    np.testing.assert_allclose(evaluate(made, FLOAT, values), values[x].mean(axis=1), rtol=1e-12, atol=1e-15)
