"""Convolutions that halve or double a picture, by tiles, are these: exactly in the field, nearly in floats."""

from __future__ import annotations

import numpy as np
import pytest

from superopt.arithmetic.field import FIELD
from superopt.arithmetic.floats import FLOAT
from superopt.demands import assuming
from superopt.dim import Dim, symbol
from superopt.evaluate import evaluate, sample
from superopt.operators.conv import Conv
from superopt.operators.definitions.filtering import minimal_filtering
from superopt.operators.definitions.halved import (
    doubled,
    doubling_by_tiles,
    halved,
    halving_by_tiles,
    sum_doubling_by_tiles,
)
from superopt.operators.layout import Expand
from superopt.operators.pointwise import Add
from superopt.operators.symbolic import resize
from superopt.operators.transposed import ConvTranspose
from superopt.term import Term, variable

HALVING, DOUBLING = Conv((2, 2), (1, 1, 1, 1)), ConvTranspose((2, 2), (1, 1, 1, 1))


def assert_equal(made: Term | None, direct: Term) -> None:
    """The same type and value, in both arithmetics."""
    assert made is not None
    assert made.type == direct.type
    for ring in (FIELD, FLOAT):
        values = sample((direct,), ring, seed=1)
        found, expected = (evaluate(term, ring, values) for term in (made, direct))
        assert np.array_equal(found, expected) if ring is FIELD else np.allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("side", [2, 4])
@pytest.mark.parametrize("pads", [(0, 0, 0, 0), (1, 1, 1, 1), (2, 1, 1, 2), (3, 1, 2, 3)])
@pytest.mark.parametrize("size", [(8, 10), (12, 4)])
@pytest.mark.parametrize("batch", [1, 2])
def test_halved_by_tiles_it_is_the_convolution(
    batch: int, size: tuple[int, int], pads: tuple[int, ...], side: int
) -> None:
    conv = Conv((2, 2), pads)
    x, k = variable("x", (batch, 2, *size)), variable("k", (3, 2, 4, 4), constant=True)
    assert_equal(halved(conv, x, k, side), conv(x, k))


def test_where_the_last_place_is_not_read_it_is_as_it_was_or_not_offered() -> None:
    x, k = variable("x", (1, 2, 7, 9)), variable("k", (3, 2, 4, 4), constant=True)
    assert halved(Conv((2, 2), (0, 0, 0, 0)), x, k, 4) is None
    assert_equal(halved(HALVING, x, k, 4), HALVING(x, k))


@pytest.mark.parametrize("side", [2, 4])
@pytest.mark.parametrize("size", [(4, 8), (5, 7)])
@pytest.mark.parametrize("pads", [(1, 1, 1, 1), (0, 1, 1, 2)])
def test_doubled_by_tiles_it_is_the_transposed_convolution(
    pads: tuple[int, ...], size: tuple[int, int], side: int
) -> None:
    op = ConvTranspose((2, 2), pads)
    x, k = variable("x", (2, 3, *size)), variable("k", (3, 2, 4, 4), constant=True)
    direct, b = op(x, k), variable("b", (2,), constant=True)
    assert_equal(doubled(op, x, k, None, side), direct)
    assert_equal(doubled(op, x, k, b, side), Add()(direct, Expand((1,), direct.shape)(b)))


def test_it_is_offered_where_many_channels_meet() -> None:
    for channels, offered in ((256, True), (16, False)):
        x, k = variable("x", (1, channels, 32, 32)), variable("k", (channels, channels, 4, 4), constant=True)
        assert (halving_by_tiles(HALVING, x, k) is not None) is offered
        assert (doubling_by_tiles(DOUBLING, x, k) is not None) is offered
        twice = DOUBLING(x, k)
        bias = Expand((1,), twice.shape)(variable("b", (channels,), constant=True))
        assert (sum_doubling_by_tiles(Add(), twice, bias) is not None) is offered
        computed = variable("k", (channels, channels, 4, 4))
        assert halving_by_tiles(HALVING, x, computed) is None
        assert doubling_by_tiles(DOUBLING, x, computed) is None


def test_of_a_number_of_images_that_is_a_symbol_it_is_that_of_any_number() -> None:
    def made(count: Dim) -> Term:
        x, k = variable("x", (count, 256, 32, 32)), variable("k", (256, 256, 4, 4), constant=True)
        with assuming():
            found = halving_by_tiles(HALVING, x, k)
        assert found is not None
        return found

    for count in (1, 3):
        assert resize((made(symbol("n")),), {"n": count}) == (made(count),)


@pytest.mark.parametrize("outputs", [2, 3, 4])
def test_filtering_by_two_taps_multiplies_as_often_as_it_says(outputs: int) -> None:
    by = minimal_filtering(outputs, 2)
    data, taps = np.arange(1, outputs + 2) ** 2, np.array([3, -5])
    products = (np.array(by.of_filter) @ taps) * (np.array(by.of_data) @ data)
    results = np.array(by.of_products) @ products
    np.testing.assert_array_equal(results, by.denominator * np.correlate(data, taps, "valid"))
