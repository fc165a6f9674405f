"""The field is exact at true sizes, and divides."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import default_rng

from superopt.arithmetic.carrier import Array
from superopt.arithmetic.field import FIELD, PRIME


def _exact_product(x: Array, y: Array) -> Array:
    """With Python's integers, which do not overflow."""
    return ((x.astype(object) @ y.astype(object)) % PRIME).astype(np.int64)


@pytest.mark.parametrize("k", [1, 3, 256, 4096])
@pytest.mark.parametrize("near", [0, PRIME - 3])
def test_the_field_multiplies_matrices_exactly(k: int, near: int) -> None:
    rng = default_rng(k)
    x, y = rng.integers(near, PRIME, (5, k)), rng.integers(near, PRIME, (k, 4))
    assert (FIELD.matmul(x, y) == _exact_product(x, y)).all()


def test_the_field_multiplies_the_largest_elements_exactly_at_the_longest_axis() -> None:
    k = 2**21 - 1
    largest = np.full((1, k), PRIME - 1)
    assert FIELD.matmul(largest, largest.T).item() == k * (PRIME - 1) ** 2 % PRIME


def test_the_field_multiplies_batches_of_matrices() -> None:
    rng = default_rng(0)
    x, y = FIELD.sample((3, 2, 7), rng), FIELD.sample((3, 7, 5), rng)
    together = FIELD.matmul(x, y)
    assert all((together[i] == _exact_product(x[i], y[i])).all() for i in range(3))


@pytest.mark.parametrize("operation", ["add", "mul"])
def test_the_field_adds_and_multiplies_as_integers_modulo_p(operation: str) -> None:
    rng = default_rng(1)
    x, y = rng.integers(0, PRIME, 1000), rng.integers(PRIME - 1000, PRIME, 1000)
    exact = x.astype(object) + y if operation == "add" else x.astype(object) * y
    assert (getattr(FIELD, operation)(x, y) == exact % PRIME).all()


def test_the_field_sums_as_integers_modulo_p() -> None:
    x = default_rng(2).integers(PRIME - 1000, PRIME, (9, 1000, 3))
    assert (FIELD.total(x, (1, 2)) == x.astype(object).sum(axis=(1, 2)) % PRIME).all()


def test_division_in_the_field_undoes_multiplication() -> None:
    rng = default_rng(3)
    x, y = FIELD.sample((500,), rng), FIELD.sample((500,), rng)
    assert (FIELD.div(FIELD.mul(x, y), y) == x).all()
    assert (FIELD.mul(FIELD.div(x, y), y) == x).all()


@pytest.mark.parametrize(("value", "times"), [(0.5, 2), (-0.25, 4), (3.0, 1), (0.1, 2**55), (-7.0, 1)])
def test_a_number_has_its_exact_image_in_the_field(value: float, times: int) -> None:
    whole = int(value * times)
    assert whole == value * times
    assert FIELD.mul(FIELD.constant(value), np.asarray(times % PRIME)) == whole % PRIME


def test_softmax_in_the_field_sums_to_one() -> None:
    x = FIELD.sample((4, 7), default_rng(8))
    assert (FIELD.total(FIELD.softmax(x, 1), (1,)) == 1).all()
