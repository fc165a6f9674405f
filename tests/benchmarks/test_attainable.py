"""What a model could gain at best, by an inference and what the profiler says of its kernels."""

from __future__ import annotations

import math

import pytest

from benchmarks.attainable import best

PRODUCT, OTHER = True, False


@pytest.mark.parametrize(
    ("seconds", "kernels", "expected"),
    [
        (4.0, [(PRODUCT, 2.0), (OTHER, 2.0)], 2.0),
        (3.0, [(PRODUCT, 2.0), (OTHER, 2.0)], 2.0),  # half a second is the profiler's, of each
        (5.0, [(PRODUCT, 2.0), (OTHER, 2.0)], 2.5),  # a second between kernels, which is no product's
        (1.0, [(OTHER, 1.0)], math.inf),
    ],
    ids=["as the profiler says", "less than the profiler says", "more than the profiler says", "no products"],
)
def test_the_best_is_an_inference_over_its_products_without_what_the_profiler_adds(
    seconds: float, kernels: list[tuple[bool, float]], expected: float
) -> None:
    assert best(seconds, kernels) == pytest.approx(expected)
