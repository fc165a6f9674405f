"""Convolutions are those of whole blocks, with channels of zeros, and of fewer groups: exactly."""

from __future__ import annotations

import pytest

from superopt.arithmetic.field import FIELD
from superopt.dim import Shape, symbol
from superopt.evaluate import evaluate, sample
from superopt.operators.conv import Conv
from superopt.operators.definitions.blocks import BLOCK, LAID_OUT, in_fewer_groups, of_whole_blocks
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
GROUPS = {
    "two as one": (Conv((1, 1), (1, 1, 1, 1), (1, 1), 4), (2, 32, 5, 4), (32, 8, 3, 3)),
    "four as one": (Conv((2, 1), (0, 1, 1, 0), (1, 2), 8), (1, 32, 5, 6), (96, 4, 2, 3)),
    "one more of zeros": (Conv((1, 1), (0, 0, 0, 0), (1, 1), 13), (1, 104, 3, 3), (104, 8, 1, 1)),
    "three more of zeros": (Conv((1, 1), (1, 1, 1, 1), (1, 1), 13), (1, 52, 4, 4), (156, 4, 3, 3)),
    "more that come out": (Conv((1, 1), (0, 0, 0, 0), (1, 1), 2), (1, 32, 3, 3), (48, 16, 2, 2)),
    "all of few": (Conv((1, 1), (0, 0, 0, 0), (1, 1), 5), (1, 20, 3, 3), (40, 4, 1, 1)),
    "more that come in": (Conv((1, 1), (0, 0, 0, 0), (1, 1), 6), (3, 144, 3, 3), (96, 24, 1, 1)),
}
UNJOINED = {
    "one group": (Conv((1, 1), (0,) * 4, (1, 1), 1), (1, 8, 3, 3), (8, 8, 1, 1)),
    "groups of whole blocks": (Conv((1, 1), (0,) * 4, (1, 1), 2), (1, 32, 3, 3), (64, 16, 1, 1)),
    "channels each by itself": (Conv((1, 1), (0,) * 4, (1, 1), 32), (1, 32, 3, 3), (32, 1, 1, 1)),
    "too many to join": (Conv((1, 1), (0,) * 4, (1, 1), 16), (1, 32, 3, 3), (32, 2, 1, 1)),
    "too many of zeros": (Conv((1, 1), (0,) * 4, (1, 1), 9), (1, 36, 3, 3), (36, 4, 1, 1)),
    "one axis": (Conv((1,), (0, 0), (1,), 4), (1, 32, 5), (32, 8, 1)),
}
LEFT = {
    "whole blocks": (Conv((1, 1), (0,) * 4, (1, 1), 8), (1, 8, 3, 3), (8, 1, 1, 1)),
    "less than one block": (Conv((1, 1), (0,) * 4, (1, 1), 1), (1, 3, 3, 3), (6, 3, 1, 1)),
    "channels of several inputs": (Conv((1, 1), (0,) * 4, (1, 1), 3), (1, 6, 3, 3), (3, 2, 1, 1)),
    "several channels of one input": (Conv((1, 1), (0,) * 4, (1, 1), 5), (1, 5, 3, 3), (10, 1, 1, 1)),
}


def given(conv: Conv, x: Shape, k: Shape) -> tuple[Term, Term, Term]:
    picture, kernel = variable("x", x, "float32"), variable("k", k, "float32", constant=True)
    return conv(picture, kernel), picture, kernel


def computed_by(meaning: Term | None, direct: Term) -> Term:
    """The one convolution that a meaning computes by, which is of the same values, exactly."""
    assert meaning is not None
    assert meaning.type == direct.type
    values = sample((direct,), FIELD, 0)
    assert (evaluate(meaning, FIELD, values) == evaluate(direct, FIELD, values)).all()
    (inner,) = (t for t in subterms(meaning) if isinstance(t.operator, Conv))
    return inner


@pytest.mark.parametrize(("conv", "x", "k"), [*SINGLE, *ALL])
def test_whole_blocks_have_the_same_convolution(conv: Conv, x: Shape, k: Shape) -> None:
    direct, *inputs = given(conv, x, k)
    inner = computed_by(of_whole_blocks(conv, *inputs), direct)
    assert int(inner.inputs[0].shape[1]) % BLOCK == 0


@pytest.mark.parametrize(("conv", "x", "k"), LEFT.values(), ids=LEFT)
def test_other_convolutions_are_left(conv: Conv, x: Shape, k: Shape) -> None:
    _, *inputs = given(conv, x, k)
    assert of_whole_blocks(conv, *inputs) is None


def test_how_many_channels_of_a_symbolic_number_are_missing_is_not_guessed() -> None:
    channels = symbol("c")
    conv = Conv((1, 1), (0,) * 4, (1, 1), channels)
    assert of_whole_blocks(conv, variable("x", (1, channels, 3, 3)), variable("k", (channels, 1, 1, 1))) is None


@pytest.mark.parametrize(("conv", "x", "k"), GROUPS.values(), ids=GROUPS)
def test_fewer_groups_of_whole_blocks_have_the_same_convolution(conv: Conv, x: Shape, k: Shape) -> None:
    direct, *inputs = given(conv, x, k)
    inner = computed_by(in_fewer_groups(conv, *inputs), direct)
    wide, kernel = inner.operator, inner.inputs[1]
    assert isinstance(wide, Conv)
    in_blocks = int(kernel.shape[1]) % LAID_OUT == int(kernel.shape[0]) // int(wide.group) % LAID_OUT == 0
    assert in_blocks or wide.group == 1
    assert kernel.constant


@pytest.mark.parametrize(("conv", "x", "k"), UNJOINED.values(), ids=UNJOINED)
def test_other_groups_are_left(conv: Conv, x: Shape, k: Shape) -> None:
    _, *inputs = given(conv, x, k)
    assert in_fewer_groups(conv, *inputs) is None


def test_groups_of_a_kernel_that_is_computed_are_left() -> None:
    conv, x, k = GROUPS["two as one"]
    assert in_fewer_groups(conv, variable("x", x), variable("k", k)) is None


def test_groups_of_a_symbolic_number_are_left() -> None:
    conv, groups = Conv((1, 1), (0,) * 4, (1, 1), symbol("g")), symbol("g")
    x, k = variable("x", (1, 8 * groups, 3, 3)), variable("k", (8 * groups, 8, 1, 1), constant=True)
    assert in_fewer_groups(conv, x, k) is None
