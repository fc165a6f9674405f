"""Random images whose neighbours are alike."""

from __future__ import annotations

import numpy as np
import pytest

from superopt.cost.smooth import smooth
from superopt.drawn import DRAWN

SEEDS = np.random.SeedSequence(7)


def rng() -> np.random.Generator:
    return np.random.default_rng(SEEDS)


def alike(values: np.ndarray, axis: int) -> float:
    """The correlation of neighbours along an axis."""
    first, second = (np.take(values, range(a, values.shape[axis] - 1 + a), axis).ravel() for a in (0, 1))
    return float(np.corrcoef(first, second)[0, 1])


@pytest.mark.parametrize(
    ("shape", "places"), [((2, 8, 61, 67), (2, 3)), ((8, 61, 67, 3), (1, 2)), ((2, 4, 5, 61, 67), (3, 4))]
)
def test_neighbouring_places_of_an_image_are_alike_and_channels_are_not(
    shape: tuple[int, ...], places: tuple[int, int]
) -> None:
    values = smooth(rng(), shape)
    assert values.shape == shape
    for axis, size in enumerate(shape):
        if axis in places:
            assert alike(values, axis) > 0.6, axis
        elif size > 1:
            assert abs(alike(values, axis)) < 0.2, axis


def test_smooth_numbers_are_of_the_size_of_others() -> None:
    values = smooth(rng(), (16, 16, 61, 67))
    assert abs(float(values.mean())) < 0.1
    assert float(values.std()) == pytest.approx(1.0, rel=0.1)


@pytest.mark.parametrize("shape", [(61,), (61, 67), (3, 61, 67)], ids=str)
def test_what_is_no_stack_of_images_is_drawn_as_before(shape: tuple[int, ...]) -> None:
    np.testing.assert_array_equal(smooth(rng(), shape), rng().standard_normal(shape, np.float32))


def test_numbers_come_again_after_many_and_no_row_or_channel_is_another() -> None:
    values = smooth(rng(), (256, 1024))
    assert len(np.unique(values)) > DRAWN * 0.95
    np.testing.assert_array_equal(values.ravel()[DRAWN:], values.ravel()[:-DRAWN])
    assert len(np.unique(values, axis=0)) == 256
    assert len(np.unique(smooth(rng(), (1, 256, 32, 32))[0], axis=0)) == 256


def test_the_finest_noise_alone_tells_neighbours_of_a_large_square_apart() -> None:
    square = smooth(rng(), (1, 1, 32, 32))
    assert len(np.unique(square)) > 1000
    assert alike(square, 3) > 0.6


def test_the_same_seed_draws_the_same() -> None:
    np.testing.assert_array_equal(smooth(rng(), (1, 2, 33, 34)), smooth(rng(), (1, 2, 33, 34)))
