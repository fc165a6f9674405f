"""Convolutions to few channels are the same by taps, wherever they are padded, and of few multiplications left."""

from __future__ import annotations

import pytest

from superopt.dim import Shape
from superopt.operators.conv import Conv
from superopt.operators.definitions.taps import by_taps
from superopt.term import subterms, variable
from tests.operators.definitions.equality import assert_equal
from tests.operators.definitions.test_phases import given

ONES = (1, 1)
GIVEN = {
    "three channels": (Conv(ONES, (1, 1, 1, 1)), (1, 32, 6, 7), (3, 32, 3, 3)),
    "pads of all kinds": (Conv(ONES, (1, 2, 0, 3)), (2, 16, 6, 5), (2, 16, 3, 5)),
    "gaps": (Conv(ONES, (2, 1, 2, 1), (2, 1)), (1, 16, 7, 6), (1, 16, 3, 3)),
    "no pads": (Conv(), (1, 16, 9, 9), (3, 16, 5, 5)),
}
LEFT = {
    "few channels that come in": (Conv(ONES, (3, 3, 3, 3)), (1, 2, 9, 9), (1, 2, 7, 7)),
    "a row": (Conv(), (1, 64, 9, 9), (3, 64, 1, 7)),
    "a column": (Conv(), (1, 64, 9, 9), (3, 64, 7, 1)),
    "many channels": (Conv(), (1, 64, 9, 9), (16, 64, 3, 3)),
    "longer steps": (Conv((1, 2)), (1, 64, 8, 8), (3, 64, 3, 3)),
    "groups": (Conv(group=2), (1, 64, 8, 8), (2, 32, 3, 3)),
    "one axis": (Conv((1,), (0, 0), (1,)), (1, 64, 8), (3, 64, 3)),
}


@pytest.mark.parametrize(("conv", "x", "k"), GIVEN.values(), ids=GIVEN)
def test_by_taps_it_is_the_same_convolution(conv: Conv, x: Shape, k: Shape) -> None:
    direct, *inputs = given(conv, x, k)
    found = by_taps(conv, *inputs)
    assert_equal(found, direct)
    assert found is not None
    both = [t for t in subterms(found) if isinstance(t.operator, Conv)]
    assert sorted(t.inputs[1].shape[2:] for t in both) == sorted([(1, k[3]), (k[2], 1)])
    assert all(t.inputs[1].constant for t in both)


@pytest.mark.parametrize(("conv", "x", "k"), LEFT.values(), ids=LEFT)
def test_other_convolutions_are_left(conv: Conv, x: Shape, k: Shape) -> None:
    _, *inputs = given(conv, x, k)
    assert by_taps(conv, *inputs) is None


def test_a_kernel_that_is_computed_is_left() -> None:
    image, kernel = variable("x", (1, 64, 9, 9), "float32"), variable("k", (3, 64, 5, 5), "float32")
    assert by_taps(Conv(), image, kernel) is None
