"""An interval holds the truth about as often as it says, however few values it is of."""

import numpy as np
import pytest

from superopt.search.interval import _student, interval


@pytest.mark.parametrize("sessions", [3, 4, 5, 8])
def test_interval_covers_the_truth_in_more_than_nine_of_ten_experiments(sessions: int) -> None:
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(400):
        _, low, high = interval(list(np.exp(rng.normal(0.1, 0.03, sessions))), seed=1)
        hits += low <= np.exp(0.1) <= high
    assert 0.90 <= hits / 400 <= 0.98  # plain percentiles: 0.83 for five


@pytest.mark.parametrize("sessions", [6, 7, 10, 20])
def test_interval_of_two_kinds_in_turns_is_of_what_differs_within_each(sessions: int) -> None:
    rng = np.random.default_rng(0)
    hits, narrower = 0, 0
    for _ in range(400):
        values = rng.normal(0.1, 0.03, sessions)
        values[::2] += 0.05
        values[1::2] -= 0.05
        mean, low, high = interval(list(np.exp(values)), seed=1, kinds=2)
        assert low <= mean <= high
        hits += low <= np.exp(0.1) <= high
        _, least, most = interval(list(np.exp(values)), seed=1)
        narrower += high / low < most / least
    assert narrower / 400 > 0.95
    assert 0.90 <= hits / 400 <= 0.99


def test_interval_depends_on_the_seed_alone() -> None:
    values = [1.0, 1.1, 1.05, 0.98, 1.2]
    assert interval(values, 3) == interval(values, 3)


@pytest.mark.parametrize(("freedom", "quantile"), [(2, 4.303), (3, 3.182), (4, 2.776), (5, 2.571), (9, 2.262)])
def test_students_quantile_is_that_of_the_tables(freedom: int, quantile: float) -> None:
    assert _student(0.975, freedom) == pytest.approx(quantile, rel=0.003)


@pytest.mark.parametrize(("freedom", "quantile"), [(2, 6.205), (3, 4.177), (4, 3.495)])
def test_so_it_is_with_the_confidence_of_a_look(freedom: int, quantile: float) -> None:
    assert _student(0.9875, freedom) == pytest.approx(quantile, rel=0.01)
