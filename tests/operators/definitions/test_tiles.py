"""A convolution by tiles is the convolution: exactly in the field, and as nearly as sums of products in floats."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from superopt.arithmetic.field import FIELD
from superopt.arithmetic.floats import FLOAT
from superopt.demands import assuming
from superopt.dim import Dim, symbol
from superopt.evaluate import evaluate, sample
from superopt.operators.conv import Conv
from superopt.operators.definitions.filtering import TAPS, minimal_filtering
from superopt.operators.definitions.tiles import by_tiles, worthwhile_matrices, worthwhile_tiles
from superopt.operators.symbolic import resize
from superopt.term import Term, subterms, variable

PADS = [(0, 0, 0, 0), (1, 1, 1, 1), (0, 1, 2, 3)]


@pytest.mark.parametrize("side", [2, 4])
@pytest.mark.parametrize("pads", PADS)
@pytest.mark.parametrize(("batch", "group"), [(1, 1), (1, 2), (2, 1), (2, 2)])
@pytest.mark.parametrize("of_matrices", [False, True])
def test_it_has_the_type_and_value_of_the_convolution(
    of_matrices: bool, pads: tuple[int, ...], batch: int, group: int, side: int
) -> None:
    conv = Conv(pads=pads, group=group)
    for channels, outputs, height, width in itertools.product((1, 2), (1, 3), (3, 4, 7), (5, 8)):
        x = variable("x", (batch, group * channels, height, width))
        k = variable("k", (group * outputs, channels, 3, 3), constant=True)
        direct, tiled = conv(x, k), by_tiles(conv, x, k, side, of_matrices)
        assert tiled.type == direct.type
        for ring in (FIELD, FLOAT):
            values = sample((direct,), ring, seed=height)
            found, expected = (evaluate(term, ring, values) for term in (tiled, direct))
            assert np.array_equal(found, expected) if ring is FIELD else np.allclose(found, expected), x


@pytest.mark.parametrize("of_matrices", [False, True])
def test_of_a_number_of_images_that_is_a_symbol_it_is_that_of_any_number(of_matrices: bool) -> None:
    def tiled(count: Dim) -> Term:
        x, k = variable("x", (count, 64, 14, 14)), variable("k", (192, 64, 3, 3), constant=True)
        with assuming():
            made = (worthwhile_matrices if of_matrices else worthwhile_tiles)(Conv(pads=(1, 1, 1, 1)), x, k)
        assert made is not None
        return made

    for count in (1, 2, 5):
        assert resize((tiled(symbol("n")),), {"n": count}) == (tiled(count),)


@pytest.mark.parametrize("size", [(4, 8), (5, 7), (14, 3)])
@pytest.mark.parametrize("of_matrices", [False, True])
def test_of_rows_and_columns_that_are_symbols_it_is_that_of_any_sizes(of_matrices: bool, size: tuple[int, int]) -> None:
    conv, sizes = Conv(pads=(1, 1, 1, 1)), {"h": size[0], "w": size[1]}
    x, k = variable("x", (1, 64, symbol("h"), symbol("w"))), variable("k", (192, 64, 3, 3), constant=True)
    with assuming():
        tiled = (worthwhile_matrices if of_matrices else worthwhile_tiles)(conv, x, k)
        direct = conv(x, k)
    assert tiled is not None
    made, expected = (resize((t,), sizes)[0] for t in (tiled, direct))
    values = sample((expected,), FIELD, seed=size[0])
    assert_array_equal(evaluate(made, FIELD, values), evaluate(expected, FIELD, values))


@pytest.mark.parametrize("outputs", [2, 3, 4])
def test_filtering_multiplies_as_often_as_it_says(outputs: int) -> None:
    by, often = minimal_filtering(outputs), outputs + TAPS - 1
    shapes = [np.shape(m) for m in (by.of_data, by.of_filter, by.of_products)]
    assert shapes == [(often, often), (often, TAPS), (outputs, often)]
    rng = np.random.default_rng(0)
    data, taps = rng.integers(-9, 10, often), rng.integers(-9, 10, TAPS)
    products = (np.array(by.of_filter) @ taps) * (np.array(by.of_data) @ data)
    results = np.array(by.of_products) @ products
    assert_array_equal(results, by.denominator * np.correlate(data, taps, "valid"))


@pytest.mark.parametrize(
    ("conv", "channels", "offered"),
    [
        (Conv(pads=(1, 1, 1, 1)), (64, 192), True),
        (Conv(pads=(1, 1, 1, 1)), (64, 64), False),
        (Conv(strides=(2, 2)), (256, 256), False),
        (Conv(dilations=(2, 2)), (256, 256), False),
    ],
)
def test_it_is_offered_where_it_may_pay(conv: Conv, channels: tuple[int, int], offered: bool) -> None:
    x, k = variable("x", (1, channels[0], 14, 14)), variable("k", (channels[1], channels[0], 3, 3), constant=True)
    assert (worthwhile_tiles(conv, x, k) is not None) == offered


def test_in_groups_it_is_the_channels_of_one_that_count() -> None:
    x, k = variable("x", (1, 512, 14, 14)), variable("k", (512, 64, 3, 3), constant=True)
    assert worthwhile_tiles(Conv(group=8), x, k) is None
    assert worthwhile_tiles(Conv(group=4), x, variable("k", (512, 128, 3, 3), constant=True)) is not None


def test_it_is_not_offered_where_the_kernel_is_computed() -> None:
    x, k = variable("x", (1, 192, 14, 14)), variable("k", (192, 192, 3, 3))
    assert worthwhile_tiles(Conv(), x, k) is None


def test_its_matrices_are_small_and_its_kernels_constant() -> None:
    x, k = variable("x", (1, 192, 14, 14)), variable("k", (192, 192, 3, 3), constant=True)
    tiled = by_tiles(Conv(pads=(1, 1, 1, 1)), x, k, side=4)
    kernels = [t.inputs[1] for t in subterms(tiled) if isinstance(t.operator, Conv)]
    assert len(kernels) == 2
    assert all(kernel.constant for kernel in kernels)


@pytest.mark.parametrize(("channels", "offered"), [((64, 64), False), ((64, 192), True), ((128, 192), False)])
def test_products_of_matrices_are_offered_where_few_are_multiplied_for_what_is_moved(
    channels: tuple[int, int], offered: bool
) -> None:
    x, k = variable("x", (1, channels[0], 14, 14)), variable("k", (channels[1], channels[0], 3, 3), constant=True)
    assert (worthwhile_matrices(Conv(pads=(1, 1, 1, 1)), x, k) is not None) == offered


@pytest.mark.parametrize(("size", "products"), [(6, 16), (7, 16), (27, 36), (56, 36)])
def test_tiles_are_smaller_where_few_share_the_weights(size: int, products: int) -> None:
    x, k = variable("x", (1, 256, size, size)), variable("k", (256, 256, 3, 3), constant=True)
    tiled = worthwhile_tiles(Conv(pads=(1, 1, 1, 1)), x, k)
    assert tiled is not None
    assert products in {t.operator.group for t in subterms(tiled) if isinstance(t.operator, Conv)}
