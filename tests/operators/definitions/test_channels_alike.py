"""Convolutions of channels that are all alike are those of one channel, by the sum of what each is multiplied by."""

from __future__ import annotations

import pytest

from superopt.operators.conv import Conv
from superopt.operators.definitions.channels_alike import of_channels_alike
from superopt.operators.layout import Concat, Expand
from superopt.term import Term, variable
from tests.operators.definitions.equality import assert_equal

STRIDED = Conv((2, 1), (1, 1, 1, 1), (1, 2), 1)
"""Of 3 by 3, in steps of two rows, over every other column."""


def alike(channels: int, *axes: int) -> Term:
    """A map whose channels are alike, which differs along these axes."""
    to = (2, channels, 6, 7)
    return Expand(axes, to)(variable(f"m{channels}", tuple(to[a] for a in axes)))


def kernel(channels: int, *axes: int) -> Term:
    """One of so many channels that come in, which differs along these axes, or all."""
    to = (5, channels, 3, 3)
    of = variable("k", tuple(to[a] for a in axes) or to, constant=True)
    return Expand(axes, to)(of) if axes else of


@pytest.mark.parametrize("axes", [(0, 2, 3), (2, 3), (0,)], ids=str)
@pytest.mark.parametrize("of_kernel", [(), (1, 2, 3), (2, 3), (0, 1)], ids=str)
def test_channels_alike_are_convolved_as_one(axes: tuple[int, ...], of_kernel: tuple[int, ...]) -> None:
    x, k = alike(4, *axes), kernel(4, *of_kernel)
    made = assert_equal(of_channels_alike(STRIDED, x, k), STRIDED(x, k))
    assert [i.shape[1] for i in made.inputs] == [1, 1]


def test_of_two_maps_that_are_joined_each_is_one_channel() -> None:
    x, k = Concat(1)(alike(4, 0, 2, 3), alike(3, 0, 2, 3)), kernel(7)
    made = assert_equal(of_channels_alike(STRIDED, x, k), STRIDED(x, k))
    assert [i.shape[1] for i in made.inputs] == [2, 2]


def test_beside_what_is_joined_others_keep_their_channels() -> None:
    x, k = Concat(1)(variable("x", (2, 3, 6, 7)), alike(4, 0, 2, 3)), kernel(7, 1, 2, 3)
    made = assert_equal(of_channels_alike(STRIDED, x, k), STRIDED(x, k))
    assert [i.shape[1] for i in made.inputs] == [4, 4]


@pytest.mark.parametrize(
    "found",
    [
        of_channels_alike(STRIDED, variable("x", (2, 4, 6, 7)), kernel(4)),
        of_channels_alike(STRIDED, alike(4, 0, 1), kernel(4)),
        of_channels_alike(STRIDED, alike(1, 0, 2, 3), kernel(1)),
        of_channels_alike(STRIDED, alike(4, 0, 2, 3), variable("k", (5, 4, 3, 3))),
        of_channels_alike(Conv((1, 1), (0, 0, 0, 0), (1, 1), 2), alike(4, 0, 2, 3), kernel(2)),
    ],
    ids=["no repetition", "repeated along others", "one channel", "a kernel that is computed", "groups"],
)  # fmt: skip
def test_else_channels_stay(found: Term | None) -> None:
    assert found is None
