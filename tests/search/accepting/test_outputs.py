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
