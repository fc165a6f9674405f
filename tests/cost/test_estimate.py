"""Estimates of kernels that were not measured, from those that were."""

from __future__ import annotations

import pytest

from superopt.cost.analytic import AnalyticCost
from superopt.cost.estimate import Estimates
from superopt.cost.kernels import Kernel, cut
from superopt.cost.rates import CORE, GPU, Rates
from superopt.operators.activations import Elu
from superopt.operators.conv import Conv
from superopt.operators.functions import Exp
from superopt.operators.layout import Expand, Transpose
from superopt.operators.matmul import MatMul
from superopt.operators.normalize import Softmax
from superopt.operators.pointwise import Add, Sqrt
from superopt.operators.rearrange import repeated
from superopt.operators.reductions import Sum
from superopt.term import Term
from tests.cost.graphs import graph, tensor, weight

ANALYTIC = AnalyticCost()


def kernel(term: Term) -> Kernel:
    (only,) = cut(graph(term))
    return only


X = tensor("x", 64, 64)
ROOT, PRODUCT, SHARES, TOTAL = map(kernel, (Sqrt()(X), MatMul()(X, X), Softmax(1)(X), Sum((1,))(X)))


def test_before_anything_is_measured_the_analytic_cost_stands() -> None:
    assert Estimates().seconds(SHARES) == ANALYTIC.seconds(SHARES)


def test_a_kind_that_was_measured_is_estimated_by_itself() -> None:
    estimates = Estimates()
    estimates.learn(ROOT, 0.5 * ANALYTIC.seconds(ROOT))
    estimates.learn(PRODUCT, 3.0 * ANALYTIC.seconds(PRODUCT))
    assert estimates.seconds(PRODUCT) == pytest.approx(3.0 * ANALYTIC.seconds(PRODUCT))


def test_a_kind_that_was_never_measured_is_taken_to_miss_as_the_others_do() -> None:
    estimates = Estimates()
    for known, factor in ((ROOT, 0.2), (PRODUCT, 3.0), (TOTAL, 0.3)):
        estimates.learn(known, factor * ANALYTIC.seconds(known))
    assert estimates.seconds(SHARES) == pytest.approx(0.3 * ANALYTIC.seconds(SHARES))


@pytest.mark.parametrize("steps", [Exp()(X), Transpose((1, 0))(X)], ids=["point-wise", "a re-layout"])
def test_what_streams_memory_is_taken_to_miss_as_such_kinds_do_though_its_model_has_a_slow_one(steps: Term) -> None:
    slow, unseen = kernel(Elu()(X)), kernel(steps)
    estimates = Estimates()
    for known, factor in ((slow, 1.2), (PRODUCT, 3.0), (TOTAL, 2.0)):
        estimates.learn(known, factor * ANALYTIC.seconds(known))
    assert estimates.seconds(unseen) == pytest.approx(1.2 * ANALYTIC.seconds(unseen))
    estimates.learn(ROOT, 0.1 * ANALYTIC.seconds(ROOT))
    assert estimates.seconds(unseen) == pytest.approx(0.1 * ANALYTIC.seconds(unseen))
    assert estimates.seconds(SHARES) == pytest.approx(1.2 * ANALYTIC.seconds(SHARES))


H100_S = {(1024, 128): 239e-6, (32, 128): 39.5e-6, (64, 64): 21.1e-6, (160, 32): 17.9e-6, (256, 16): 17.4e-6}
"""What onnxruntime 1.31 takes on an H100 for convolutions to 256 channels, by those that there are and the size."""


def missed_by(rates: Rates) -> float:
    """The largest factor by which the largest of these tells the others falsely."""
    (first, *others) = [
        (kernel(Conv((1, 1), (0,) * 4, (1, 1), 1)(tensor("x", 1, c, size, size), weight("w", 256, c, 1, 1))), seconds)
        for (c, size), seconds in H100_S.items()
    ]
    estimates = Estimates(rates)
    estimates.learn(*first)
    ratios = [estimates.seconds(of) / seconds for of, seconds in others]
    return max(max(ratio, 1 / ratio) for ratio in ratios)


def test_small_kernels_on_a_gpu_are_told_by_large_ones_since_all_of_them_are_launched() -> None:
    assert missed_by(GPU) < 4
    assert missed_by(CORE) > 10


def root_of(size: int) -> Kernel:
    return kernel(Sqrt()(tensor("x", size)))


def test_of_a_kind_those_tell_most_that_are_near() -> None:
    estimates = Estimates()
    for size, factor in ((2**10, 4.0), (2**11, 4.0), (2**12, 4.0), (2**20, 0.5)):
        estimates.learn(root_of(size), factor * ANALYTIC.seconds(root_of(size)))
    assert estimates.seconds(root_of(2**20)) == pytest.approx(0.5 * ANALYTIC.seconds(root_of(2**20)), rel=0.01)
    missed = [estimates.seconds(root_of(2**i)) / ANALYTIC.seconds(root_of(2**i)) for i in range(12, 21)]
    assert missed == sorted(missed, reverse=True)
    estimates.learn(root_of(2**16), 3.0 * ANALYTIC.seconds(root_of(2**16)))
    assert estimates.seconds(root_of(2**16)) == pytest.approx(3.0 * ANALYTIC.seconds(root_of(2**16)), rel=0.01)


def test_what_is_near_makes_nothing_dearer_than_most_of_its_kind_are() -> None:
    """What is thought too dear is never looked at."""
    estimates = Estimates()
    for size, factor in ((2**10, 1.0), (2**11, 1.0), (2**20, 9.0)):
        estimates.learn(root_of(size), factor * ANALYTIC.seconds(root_of(size)))
    assert estimates.seconds(root_of(2**20)) == pytest.approx(ANALYTIC.seconds(root_of(2**20)))


def test_a_kernel_that_took_no_time_is_a_lesson_like_others() -> None:
    estimates = Estimates()
    estimates.learn(ROOT, 0.0)
    assert 0.0 < estimates.seconds(ROOT) < ANALYTIC.seconds(ROOT)


def test_convolutions_over_whole_blocks_of_channels_are_no_measure_of_others() -> None:
    def conv(channels: int) -> Kernel:
        alone = Conv((1, 1), (1, 1, 1, 1), (1, 1), channels)
        return kernel(alone(tensor("x", 1, channels, 8, 8), tensor("k", channels, 1, 3, 3)))

    estimates = Estimates()
    estimates.learn(conv(58), 9.0 * ANALYTIC.seconds(conv(58)))
    estimates.learn(conv(60), 2.0 * ANALYTIC.seconds(conv(60)))
    assert estimates.seconds(conv(61)) == pytest.approx(9.0 * ANALYTIC.seconds(conv(61)))
    assert estimates.seconds(conv(64)) == pytest.approx(2.0 * ANALYTIC.seconds(conv(64)))


def test_of_less_than_a_block_of_channels_the_block_is_what_was_measured() -> None:
    """A convolution of 3 channels takes four times as long as one of 12 over a fourth of the places."""
    few, more = (
        kernel(Conv(steps, (0,) * 4)(tensor("x", 1, 64, 66, 66), weight("k", out, 64, 3, 3)))
        for out, steps in ((3, (1, 1)), (12, (2, 2)))
    )
    estimates = Estimates()
    estimates.learn(few, 1e-3)
    assert estimates.seconds(more) == pytest.approx(1e-3 / 4, rel=0.1)


@pytest.mark.parametrize(
    ("shape", "axes", "is_short"),
    [
        ((32, 32, 1), (), True),
        ((32, 32, 4), (2,), True),
        ((32, 32, 4), (0, 1), True),
        ((32, 32, 4), (), False),
        ((32, 32, 4), (0,), False),
        ((32, 32, 64), (2,), False),
    ],
)
def test_what_is_repeated_in_short_rows_tells_nothing_of_long_ones(
    shape: tuple[int, ...], axes: tuple[int, ...], is_short: bool
) -> None:
    def added(to: tuple[int, ...], along: tuple[int, ...]) -> Kernel:
        return kernel(Add()(tensor("x", *to), Expand(along, to)(weight("b", *(to[a] for a in along)))))

    known, long = added(shape, axes), added((32, 32, 128), (2,))
    estimates = Estimates()
    estimates.learn(known, 10.0 * ANALYTIC.seconds(known))
    estimates.learn(ROOT, ANALYTIC.seconds(ROOT))
    assert estimates.seconds(long) == pytest.approx((1.0 if is_short else 10.0) * ANALYTIC.seconds(long))


def test_what_is_written_out_in_short_rows_tells_nothing_of_images_that_are_resized_or_of_long_rows() -> None:
    volume, image = tensor("x", 1, 8, 8, 8, 8), tensor("y", 1, 64, 8, 8)
    short = kernel(repeated(volume, (1, 1, 2, 2, 2), within=True))
    estimates = Estimates()
    estimates.learn(short, 10.0 * ANALYTIC.seconds(short))
    estimates.learn(ROOT, ANALYTIC.seconds(ROOT))
    for other in (repeated(image, (1, 1, 2, 2), within=True), repeated(volume, (1, 1, 2, 1, 1), within=True)):
        wanted = kernel(other)
        assert estimates.seconds(wanted) < 5.0 * ANALYTIC.seconds(wanted)
