"""Convolutions along one axis and three are those of pictures: exactly, in the field."""

from __future__ import annotations

import pytest

from superopt.arithmetic import FIELD
from superopt.dim import Shape, assuming, symbol
from superopt.evaluate import evaluate, sample
from superopt.operators.frames import by_frames, of_one_row
from superopt.operators.instances import resize
from superopt.operators.linear import Conv
from superopt.term import Term, variable

ROWS = [
    (Conv((2,), (1, 2), (2,), 1), (2, 4, 9), (6, 4, 3)),
    (Conv((1,), (1, 1), (1,), 4), (2, 4, 9), (4, 1, 3)),
]
FRAMES = [
    (Conv((2, 1, 2), (1, 0, 1, 2, 1, 0), (1, 2, 1), 1), (2, 3, 7, 8, 9), (5, 3, 3, 2, 3)),
    (Conv((1, 1, 1), (0, 1, 1, 0, 1, 1), (1, 1, 1), 1), (1, 3, 4, 5, 6), (5, 3, 1, 3, 3)),
    (Conv((1, 1, 1), (1, 0, 0, 1, 0, 0), (2, 1, 1), 1), (1, 2, 6, 4, 4), (3, 2, 2, 1, 1)),
]


def given(conv: Conv, x: Shape, k: Shape) -> tuple[Term, Term, Term]:
    picture, kernel = variable("x", x, "float32"), variable("k", k, "float32", constant=True)
    return conv(picture, kernel), picture, kernel


@pytest.mark.parametrize(("conv", "x", "k"), [*ROWS, *FRAMES])
def test_the_picture_has_the_same_convolution(conv: Conv, x: Shape, k: Shape) -> None:
    direct, *inputs = given(conv, x, k)
    meaning = (of_one_row if len(x) == 3 else by_frames)(conv, *inputs)
    assert meaning is not None
    assert meaning.type == direct.type
    values = sample((direct,), FIELD, 0)
    assert (evaluate(meaning, FIELD, values) == evaluate(direct, FIELD, values)).all()


@pytest.mark.parametrize(("conv", "x", "k"), FRAMES)
def test_how_many_images_there_are_may_be_a_symbol(conv: Conv, x: Shape, k: Shape) -> None:
    kernel, (images, any_number) = variable("k", k), (variable("x", (n, *x[1:])) for n in (3, symbol("n")))
    with assuming():
        meaning = by_frames(conv, any_number, kernel)
    assert meaning is not None
    assert resize((meaning,), {"n": 3}) == (by_frames(conv, images, kernel),)


def test_groups_of_frames_are_left() -> None:
    conv = Conv((1, 1, 1), (0,) * 6, (1, 1, 1), 2)
    _, *inputs = given(conv, (1, 4, 3, 3, 3), (2, 2, 1, 1, 1))
    assert by_frames(conv, *inputs) is None
