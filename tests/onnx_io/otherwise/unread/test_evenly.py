"""Places that are evenly apart are those of sets of numbers."""

from __future__ import annotations

from itertools import product

import pytest

from superopt.onnx_io.otherwise.unread.evenly import Places, evenly

EVERY = [evenly(first, first + step * more, step) for first, step, more in product((-5, 0, 2), (1, 2, 3), (0, 1, 4))]


def numbers(places: Places) -> set[int]:
    return set(range(places.first, places.last + 1, places.step))


@pytest.mark.parametrize("one", EVERY)
def test_the_fewest_places_that_all_are_among_have_both(one: Places) -> None:
    for other in EVERY:
        both = one.with_all(other)
        assert numbers(one) | numbers(other) <= numbers(both)
        assert (both.first, both.last) == (min(one.first, other.first), max(one.last, other.last))


@pytest.mark.parametrize("places", EVERY)
def test_places_within_an_axis_are_those_that_it_has(places: Places) -> None:
    for size in (1, 2, 6):
        inside = places.within(size)
        assert (set() if inside is None else numbers(inside)) == numbers(places) & set(range(size))
