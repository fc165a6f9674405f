"""Parts that are joined tell the same of every place."""

from __future__ import annotations

from functools import reduce
from itertools import product

import numpy as np
import pytest

from superopt.dim import symbol
from superopt.onnx_io.otherwise.places.boxes import Part, Parts, fewer, parts_of, whole
from superopt.operators.layout import Concat
from superopt.term import variable

SHAPE = (3, 4, 5)


def told(parts: Parts) -> dict[tuple[int, ...], tuple[str, tuple[int, ...]]]:
    """What stands in each place: of which value, and where there."""
    found = dict[tuple[int, ...], tuple[str, tuple[int, ...]]]()
    for part in parts:
        for at in product(*(range(int(str(a)), int(str(b))) for a, b in part.box)):
            place = list(part.first)
            for axis, own in enumerate(part.axes):
                if own is not None:
                    place[own] += at[axis] - int(str(part.box[axis][0]))
            assert at not in found
            found[at] = part.of, tuple(place)
    return found


def drawn(seed: int) -> Parts:
    """Boxes of three values, some of which have their axes in another order, that were put onto each other."""
    random = np.random.default_rng(seed)
    parts = whole("a", SHAPE)
    for _ in range(4):
        low, high = zip(*(sorted(random.choice(d + 1, 2, replace=False).tolist()) for d in SHAPE), strict=True)
        outside, inside = list[Part](), parts
        for axis, (a, b) in enumerate(zip(low, high, strict=True)):
            for strip in ((0, a), (b, SHAPE[axis])):
                outside += [cut for part in inside if (cut := part.within(axis, *strip)) is not None]
            inside = [cut for part in inside if (cut := part.within(axis, a, b)) is not None]
        box = tuple(zip(low, high, strict=True))
        axes = ((0, 1, 2), (2, 1, 0))[int(random.integers(2))]
        first = tuple(low[axes.index(a)] for a in range(3))
        parts = [*outside, Part(box, "abc"[int(random.integers(3))], first, axes)]
    return parts


@pytest.mark.parametrize("seed", range(20))
def test_parts_that_are_joined_tell_the_same(seed: int) -> None:
    parts = drawn(seed)
    made = fewer(parts)
    assert told(made) == told(parts)
    assert len(made) <= len(parts)


def test_what_was_cut_for_nothing_is_whole() -> None:
    cut = [p for a in range(3) for b in range(4) for p in _cell(a, b)]
    assert fewer(cut) == whole("a", SHAPE)


def _cell(a: int, b: int) -> Parts:
    """One place along two axes."""
    (part,) = whole("a", SHAPE)
    row = part.within(0, a, a + 1)
    cell = None if row is None else row.within(1, b, b + 1)
    return [] if cell is None else [cell]


def test_what_follows_in_one_value_alone_stays_apart() -> None:
    """The rows of another value that are beside these are others."""
    (part,) = whole("a", SHAPE)
    first, second = (part.within(0, a, b) for a, b in ((0, 1), (1, 3)))
    assert first is not None
    assert second is not None
    moved = second._replace(first=(0, 0, 0))
    assert fewer([first, moved]) == [first, moved]


def test_along_an_axis_whose_size_is_a_symbol_nothing_is_cut() -> None:
    (part,) = whole("a", (symbol("n"), 4))
    halves = [cut for a in (0, 2) if (cut := part.within(1, a, a + 2)) is not None]
    assert fewer(halves) == [part]
    assert fewer([]) == []


def test_more_values_are_joined_than_calls_lie_in_each_other() -> None:
    joined = reduce(Concat(0), [variable(f"x{n}", (1,)) for n in range(1200)])
    assert [part.of for part in parts_of(joined, {})] == [f"x{n}" for n in range(1200)]
