"""Convolutions are those of whole blocks, with channels of zeros: exactly."""

from __future__ import annotations

import pytest

from superopt.arithmetic import FIELD
from superopt.dim import Shape, symbol
from superopt.evaluate import evaluate, sample
from superopt.operators.blocks import BLOCK, of_whole_blocks
from superopt.operators.linear import Conv
from superopt.term import Term, subterms, variable

SINGLE = [
    (Conv((1, 1), (1, 1, 1, 1), (1, 1), 6), (2, 6, 7, 5), (6, 1, 3, 3)),
    (Conv((2, 1), (0, 1, 2, 0), (1, 2), 5), (1, 5, 7, 9), (5, 1, 3, 2)),
    (Conv((1,), (2, 2), (1,), 5), (2, 5, 9), (5, 1, 5)),
    (Conv((1, 1, 2), (0,) * 6, (1, 1, 1), 7), (1, 7, 3, 4, 5), (7, 1, 2, 2, 2)),
]
ALL = [
    (Conv((1, 1), (1, 1, 1, 1), (1, 1), 1), (2, 6, 7, 5), (5, 6, 3, 3)),
    (Conv((2, 2), (0, 0, 0, 0), (1, 1), 1), (1, 9, 7, 7), (4, 9, 1, 1)),
    (Conv((3,), (2, 0), (2,), 1), (2, 5, 9), (3, 5, 3)),
]
LEFT = {
    "whole blocks": (Conv((1, 1), (0,) * 4, (1, 1), 8), (1, 8, 3, 3), (8, 1, 1, 1)),
    "less than one block": (Conv((1, 1), (0,) * 4, (1, 1), 1), (1, 3, 3, 3), (6, 3, 1, 1)),
    "channels of several inputs": (Conv((1, 1), (0,) * 4, (1, 1), 3), (1, 6, 3, 3), (3, 2, 1, 1)),
    "several channels of one input": (Conv((1, 1), (0,) * 4, (1, 1), 5), (1, 5, 3, 3), (10, 1, 1, 1)),
}


def given(conv: Conv, x: Shape, k: Shape) -> tuple[Term, Term, Term]:
    picture, kernel = variable("x", x, "float32"), variable("k", k, "float32", constant=True)
    return conv(picture, kernel), picture, kernel


@pytest.mark.parametrize(("conv", "x", "k"), [*SINGLE, *ALL])
def test_whole_blocks_have_the_same_convolution(conv: Conv, x: Shape, k: Shape) -> None:
    direct, *inputs = given(conv, x, k)
    meaning = of_whole_blocks(conv, *inputs)
    assert meaning is not None
    assert meaning.type == direct.type
    (inner,) = (t for t in subterms(meaning) if isinstance(t.operator, Conv))
    assert int(inner.inputs[0].shape[1]) % BLOCK == 0
    values = sample((direct,), FIELD, 0)
    assert (evaluate(meaning, FIELD, values) == evaluate(direct, FIELD, values)).all()


@pytest.mark.parametrize(("conv", "x", "k"), LEFT.values(), ids=LEFT)
def test_other_convolutions_are_left(conv: Conv, x: Shape, k: Shape) -> None:
    _, *inputs = given(conv, x, k)
    assert of_whole_blocks(conv, *inputs) is None


def test_how_many_channels_of_a_symbolic_number_are_missing_is_not_guessed() -> None:
    channels = symbol("c")
    conv = Conv((1, 1), (0,) * 4, (1, 1), channels)
    assert of_whole_blocks(conv, variable("x", (1, channels, 3, 3)), variable("k", (channels, 1, 1, 1))) is None
