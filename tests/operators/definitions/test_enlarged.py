"""Convolutions of repeated places are those of the map before, phase by phase: exactly."""

from __future__ import annotations

import itertools

import pytest

from superopt.demands import assuming
from superopt.dim import Shape, symbol
from superopt.errors import ShapeError
from superopt.operators.conv import Conv
from superopt.operators.definitions.enlarged import MOST, of_repeated_places, sum_of_repeated_places
from superopt.operators.layout import Expand
from superopt.operators.pointwise import Add
from superopt.operators.rearrange import repeated
from superopt.operators.symbolic import resize
from superopt.term import Term, subterms, variable
from tests.operators.definitions.equality import assert_equal


def given(x: Shape, counts: tuple[int, int], k: Shape) -> tuple[Term, Term]:
    small = variable("x", x, "float32")
    return repeated(small, (1, 1, *counts), within=True), variable("k", k, "float32", constant=True)


@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize("counts", [(2, 2), (1, 3), (4, 1), (3, 2)])
def test_by_all_kernels_and_pads_it_is_the_same_convolution(counts: tuple[int, int], group: int) -> None:
    """Offered where it has the places of its map, and enlarges along an axis of the kernel."""
    found = 0
    for window, pads in itertools.product(
        itertools.product((1, 2, 3, 5), repeat=2), itertools.product(range(3), repeat=4)
    ):
        conv = Conv((1, 1), pads, (1, 1), group)
        x, k = given((2, 4, 3, 5), counts, (6, 4 // group, *window))
        try:
            direct = conv(x, k)
        except ShapeError:
            continue
        meaning = of_repeated_places(conv, x, k)
        keeps = [
            c == 1 or (w > 1 and pads[a] + pads[a + 2] == w - 1)
            for a, (c, w) in enumerate(zip(counts, window, strict=True))
        ]
        assert (meaning is not None) == all(keeps)
        if meaning is not None:
            found += 1
            assert_equal(meaning, direct)
    assert found > 10


def test_to_twice_the_size_it_is_of_16_products_for_36() -> None:
    conv = Conv((1, 1), (1, 1, 1, 1))
    meaning = of_repeated_places(conv, *given((1, 4, 8, 8), (2, 2), (6, 4, 3, 3)))
    assert meaning is not None
    kernels = [t.inputs[1].shape for t in subterms(meaning) if isinstance(t.operator, Conv)]
    assert kernels == [(6, 4, 2, 2)] * 4


def test_each_phase_has_the_bias_of_its_channel() -> None:
    conv, (x, k) = Conv((1, 1), (1, 1, 1, 1)), given((1, 2, 3, 4), (2, 2), (3, 2, 3, 3))
    y, bias = conv(x, k), variable("b", (3,), "float32", constant=True)
    for inputs in itertools.permutations((y, Expand((1,), y.shape)(bias))):
        meaning = sum_of_repeated_places(Add(), *inputs)
        assert meaning is not None
        assert_equal(meaning, Add()(*inputs))
    assert sum_of_repeated_places(Add(), y, y) is None
    assert sum_of_repeated_places(Add(), y, Expand((1,), y.shape)(variable("b", (3,), "float32"))) is None


def test_how_large_maps_are_may_be_a_symbol() -> None:
    conv = Conv((1, 1), (1, 1, 1, 1))
    with assuming():
        meaning = of_repeated_places(conv, *given((symbol("n"), 2, symbol("h"), 5), (2, 2), (3, 2, 3, 3)))
    assert meaning is not None
    own = of_repeated_places(conv, *given((2, 2, 3, 5), (2, 2), (3, 2, 3, 3)))
    assert resize((meaning,), {"n": 2, "h": 3}) == (own,)


@pytest.mark.parametrize(
    ("conv", "x", "k"),
    [
        (Conv((2, 2), (1, 1, 1, 1)), (2, 2), True),
        (Conv((1, 1), (2, 2, 2, 2), (2, 2)), (2, 2), True),
        (Conv((1, 1), (1, 1, 1, 1)), (1, 1), True),
        (Conv((1, 1), (1, 1, 1, 1)), (MOST, 2), True),
        (Conv((1, 1), (1, 1, 1, 1)), (2, 2), False),
    ],
    ids=["in steps", "spread out", "of a map as it is", "too often", "by a kernel that is computed"],
)
def test_nothing_is_made_of(conv: Conv, x: tuple[int, int], k: bool) -> None:
    image, kernel = given((1, 2, 4, 4), x, (2, 2, 3, 3))
    assert of_repeated_places(conv, image, kernel if k else variable("k", kernel.shape, "float32")) is None


def test_a_map_whose_repetitions_lie_apart_is_none_of_repeated_places() -> None:
    x = repeated(variable("x", (1, 2, 4, 4), "float32"), (1, 1, 2, 2), within=False)
    assert (
        of_repeated_places(Conv((1, 1), (1, 1, 1, 1)), x, variable("k", (2, 2, 3, 3), "float32", constant=True)) is None
    )
