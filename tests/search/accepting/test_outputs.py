"""What outputs tell where rounding decides much of them."""

from __future__ import annotations

import numpy as np
import pytest

from superopt.search.accepting.outputs import Sample, judged

EXPECTED = np.linspace(-1, 1, 64, dtype=np.float32)


@pytest.mark.parametrize(
    ("plain", "optimized", "examined"),
    [
        (0.0, 0.04, True),
        (0.0, 0.0, True),
        (0.02, 0.03, True),
        (1e-6, 0.04, False),
        (0.0, 0.2, False),
        (0.2, 0.03, False),
    ],
    ids=["without", "in both", "with", "off by little", "without, and far with", "with, and far without"],
)
def test_noisy_outputs_are_examined_where_a_candidate_gives_the_same_with_or_without_optimizations(
    plain: float, optimized: float, examined: bool
) -> None:
    found = [[EXPECTED * np.float32(1 + off)] for off in (plain, optimized)]
    sample = Sample({}, [EXPECTED], [None], noisy=[[EXPECTED * np.float32(1.03)]], found=found)
    told = judged(["y"], [sample])
    assert (told.agrees, told.examined) == (True, examined)


def noisy_sample(*off: float, of: np.ndarray = EXPECTED, noise: float = 1.03) -> Sample:
    """A sample that noise takes far, where a candidate is so far off without optimizations, and with them."""
    found = [[of * np.float32(1 + one)] for one in off]
    return Sample({}, [of], [None], noisy=[[of * np.float32(noise)]], found=found)


@pytest.mark.parametrize(("off", "examined"), [(0.1, True), (0.5, False)], ids=["by some noise", "by much"])
def test_one_sample_tells_nothing_where_another_shows_that_a_candidate_is_off(off: float, examined: bool) -> None:
    told = judged(["y"], [noisy_sample(0.0, 0.04), noisy_sample(0.0, off)])
    assert (told.agrees, told.examined) == (True, examined)


def test_what_is_the_same_has_to_vary_itself() -> None:
    of = np.array([1.0, 1.2], np.float32)
    optimized = np.full(2, 1.2, np.float32)
    sample = Sample({}, [of], [None], noisy=[[optimized]], found=[[of * np.float32(1.01)], [optimized]])
    assert not judged(["y"], [sample]).examined


def test_nothing_is_told_where_noise_is_as_large_as_what_is_computed() -> None:
    assert not judged(["y"], [noisy_sample(-1.0, 0.6, noise=1.6)]).examined
