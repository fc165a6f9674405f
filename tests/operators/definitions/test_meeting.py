"""A convolution by the taps that meet its map is the convolution, whatever the sizes, steps and pads."""

from __future__ import annotations

import itertools

from numpy.testing import assert_array_equal

from superopt.arithmetic.field import FIELD
from superopt.errors import ShapeError
from superopt.evaluate import evaluate, sample
from superopt.operators.conv import Conv
from superopt.operators.definitions import meeting
from superopt.operators.definitions.meeting import of_taps_that_meet
from superopt.term import Term, variable


def _pair(conv: Conv, size: tuple[int, int], window: tuple[int, int]) -> tuple[Term, Term | None] | None:
    x, k = variable("x", (1, 2, *size)), variable("k", (3, 2, *window), constant=True)
    try:
        direct = conv(x, k)
    except ShapeError:
        return None
    return direct, of_taps_that_meet(conv, x, k)


def test_it_is_the_convolution_whatever_sizes_steps_and_pads() -> None:
    fewer = 0
    for size, taps, step, gap, before, after in itertools.product(
        (1, 2, 5), (2, 3, 4), (1, 2, 4), (1, 2, 5), (0, 1, 5), (0, 2, 5)
    ):
        conv = Conv((step, 1), (before, 1, after, 0), (gap, 1))
        if (pair := _pair(conv, (size, 4), (taps, 2))) is None or pair[1] is None:
            continue
        direct, made = pair
        fewer += 1
        assert made is not None
        assert made.type == direct.type
        values = sample((direct,), FIELD, seed=size)
        assert_array_equal(evaluate(made, FIELD, values), evaluate(direct, FIELD, values), str(conv))
    assert fewer > 50, "hardly any was of fewer taps"


def test_what_is_left_is_the_middle_where_a_kernel_is_dilated_by_the_size_of_the_map() -> None:
    pair = _pair(Conv(pads=(6,) * 4, dilations=(6, 6)), (6, 5), (3, 3))
    assert pair is not None
    assert pair[1] is not None
    assert pair[1].operator == Conv()
    assert pair[1].inputs[1].shape == (3, 2, 1, 1)


def test_where_every_tap_meets_something_nothing_is_offered() -> None:
    for conv in (Conv(pads=(1, 1, 1, 1)), Conv(pads=(5,) * 4, dilations=(5, 5))):
        pair = _pair(conv, (6, 6), (3, 3))
        assert pair is not None
        assert pair[1] is None


def test_each_tap_meets_a_map_that_is_long_enough() -> None:
    examined = 0
    for size, taps, step, gap, before, after in itertools.product(
        range(1, 12), range(1, 5), range(1, 4), range(1, 4), range(5), range(5)
    ):
        results = (size + before + after - (taps - 1) * gap - 1) // step + 1
        if results > 0 and meeting._all_meet(size, taps, step, gap):
            assert meeting._Axis(size, results, taps, step, gap, before, after).meeting() == range(taps)
            examined += 1
    assert examined
