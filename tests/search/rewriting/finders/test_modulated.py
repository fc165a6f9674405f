"""What scales the channels of weights scales those of the picture, exactly."""

from __future__ import annotations

from functools import reduce

import pytest

from superopt.arithmetic.field import FIELD
from superopt.evaluate import evaluate, sample
from superopt.operators.conv import Conv
from superopt.operators.layout import Expand, Reshape, Transpose
from superopt.operators.pointwise import Add, Mul, Relu
from superopt.operators.transposed import ConvTranspose
from superopt.search.rewriting.finders.modulated import MOST, Unmodulating
from superopt.search.rewriting.rewrites import Less, rewrites_of
from superopt.term import Term, running, variable

KERNEL = (4, 3, 3, 3)
"""Channels that come out, channels that come in, and a window."""

PICTURE = variable("x", (2, 3, 6, 5))
WEIGHTS = variable("w", KERNEL, constant=True)
STYLE = Expand((1,), KERNEL)(variable("s", (3,)))
SHRINKING = Expand((0,), KERNEL)(variable("d", (4,)))
NUMBER = Expand((), KERNEL)(variable("n", ()))
TURNED = Transpose((1, 0, 2, 3))
FIVE = (1, *KERNEL)


def scaled(*factors: Term) -> Term:
    return reduce(Mul(), factors)


def as_stylegan_has_it() -> Term:
    """With a batch of one in front of the kernel, from vectors that stand in rows."""
    style = Expand((2,), FIVE)(Reshape((3,))(variable("s", (1, 3))))
    shrinking = Expand((1,), FIVE)(Reshape((4,))(Reshape((1, 4, 1, 1, 1))(variable("d", (1, 4)))))
    return Reshape(KERNEL)(scaled(Reshape(FIVE)(WEIGHTS), style, shrinking))


CONVOLUTIONS = {
    "of channels that come in": Conv()(PICTURE, scaled(WEIGHTS, STYLE)),
    "of channels that come out": Conv()(PICTURE, scaled(SHRINKING, WEIGHTS)),
    "of both": Conv(pads=(1, 1, 1, 1))(PICTURE, scaled(WEIGHTS, STYLE, SHRINKING)),
    "by a number besides": Conv()(PICTURE, scaled(WEIGHTS, STYLE, NUMBER)),
    "of each channel twice": Conv()(PICTURE, scaled(STYLE, WEIGHTS, Expand((1,), KERNEL)(variable("t", (3,))))),
    "of weights that are products": Conv()(PICTURE, scaled(WEIGHTS, STYLE, variable("v", KERNEL, constant=True))),
    "of weights that are alike for all windows": Conv()(
        PICTURE, scaled(STYLE, Expand((0, 1), KERNEL)(variable("v", KERNEL[:2], constant=True)))
    ),
    "of a batch of kernels": Conv(strides=(2, 2))(PICTURE, as_stylegan_has_it()),
    "of kernels that are turned": Conv()(
        PICTURE, TURNED(scaled(TURNED(WEIGHTS), Expand((0,), (3, 4, 3, 3))(variable("s", (3,)))))
    ),
    "transposed": ConvTranspose(strides=(2, 2))(variable("y", (2, 4, 6, 5)), scaled(WEIGHTS, STYLE, SHRINKING)),
}


@pytest.mark.parametrize("term", CONVOLUTIONS.values(), ids=CONVOLUTIONS)
def test_channels_are_scaled_apart_from_weights(term: Term) -> None:
    made = Unmodulating().of(term)
    assert made is not None
    assert made.type == term.type
    (layer,) = (t for t in running(made) if isinstance(t.operator, Conv | ConvTranspose))
    assert layer.inputs[1].constant
    env = sample((term, made), FIELD, 1)
    assert (evaluate(made, FIELD, env) == evaluate(term, FIELD, env)).all()


LEFT = {
    "constant weights": Conv()(PICTURE, WEIGHTS),
    "weights that are computed": Conv()(PICTURE, scaled(variable("k", KERNEL), STYLE)),
    "what is nothing but scales": Conv()(PICTURE, scaled(STYLE, SHRINKING)),
    "what scales windows": Conv()(PICTURE, scaled(WEIGHTS, Expand((2, 3), KERNEL)(variable("p", (3, 3))))),
    "what scales each of both": Conv()(PICTURE, scaled(WEIGHTS, Expand((0, 1), KERNEL)(variable("p", (4, 3))))),
    "sums": Conv()(PICTURE, Add()(WEIGHTS, STYLE)),
    "groups": Conv(group=2)(variable("y", (2, 6, 6, 5)), scaled(WEIGHTS, STYLE)),
    "what is cut": Conv()(PICTURE, Relu()(scaled(WEIGHTS, STYLE))),
    "kernels of several in a batch": Conv()(
        variable("y", (2, 3, 6, 5)),
        Reshape(KERNEL)(Mul()(variable("v", (2, 2, 3, 3, 3), constant=True), variable("u", (2, 2, 3, 3, 3)))),
    ),
}


@pytest.mark.parametrize("term", LEFT.values(), ids=LEFT)
def test_other_kernels_are_left(term: Term) -> None:
    assert Unmodulating().of(term) is None


def test_of_many_factors_some_are_taken_as_they_stand() -> None:
    styles = [Expand((1,), KERNEL)(variable(f"s{i}", (3,))) for i in range(2 * MOST)]
    term = Conv()(PICTURE, scaled(WEIGHTS, *styles))
    made = Unmodulating().of(term)
    if made is not None:
        env = sample((term, made), FIELD, 1)
        assert (evaluate(made, FIELD, env) == evaluate(term, FIELD, env)).all()


def test_searches_look_for_it() -> None:
    assert Less(Unmodulating) in rewrites_of((), ["conv"])
