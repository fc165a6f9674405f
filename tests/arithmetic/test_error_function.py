"""The error function is that of Python's own library, of each of many numbers."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from superopt.arithmetic.error_function import LARGE, SMALL, erf

BOUND = 4 * np.finfo(np.float64).eps
STEP = 2 * np.finfo(np.float64).smallest_subnormal
"""Of the smallest numbers the last bit is much of them."""


@given(st.lists(st.floats(allow_nan=False), max_size=20))
def test_it_is_what_python_says_of_any_number(numbers: list[float]) -> None:
    found = erf(np.array(numbers))
    wanted = np.array([math.erf(x) for x in numbers])
    assert np.all(np.abs(found - wanted) <= BOUND * np.abs(wanted) + STEP)
    assert np.array_equal(np.signbit(found), np.signbit(wanted))


def test_it_is_so_throughout_and_where_its_parts_meet() -> None:
    near = [np.linspace(at - 1e-3, at + 1e-3, 2_001) for at in (-SMALL, 0.0, SMALL, LARGE)]
    numbers = np.concatenate([np.linspace(-7.0, 7.0, 100_001), *near])
    wanted = np.array([math.erf(x) for x in numbers])
    assert np.max(np.abs(erf(numbers) - wanted) / np.maximum(np.abs(wanted), np.finfo(np.float64).tiny)) <= BOUND


def test_shapes_stay_and_what_is_no_number_is_none() -> None:
    found = erf(np.array([[np.nan], [np.inf], [-np.inf]]))
    assert np.array_equal(found, np.array([[np.nan], [1.0], [-1.0]]), equal_nan=True)
    assert erf(np.array(0.5)).shape == ()
    assert erf(np.zeros((2, 0))).shape == (2, 0)
