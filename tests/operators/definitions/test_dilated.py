"""A dilated convolution by tiles of its phases is the convolution: exactly in the field, nearly in floats."""

from __future__ import annotations

import numpy as np
import pytest

from superopt.arithmetic.field import FIELD
from superopt.arithmetic.floats import FLOAT
from superopt.demands import assuming
from superopt.dim import Dim, symbol
from superopt.evaluate import evaluate, sample
from superopt.operators.conv import Conv
from superopt.operators.definitions.dilated import by_tiles_of_phases, dilated_by_tiles
from superopt.operators.symbolic import resize
from superopt.term import Term, variable

DILATIONS = [(2, 2), (1, 3), (4, 2)]
PADS = [(0, 0, 0, 0), (2, 2, 2, 2), (1, 3, 5, 2), (4, 4, 4, 4)]


@pytest.mark.parametrize("side", [2, 4])
@pytest.mark.parametrize("dilations", DILATIONS)
@pytest.mark.parametrize("pads", PADS)
@pytest.mark.parametrize(("batch", "group"), [(1, 1), (2, 2)])
def test_it_has_the_type_and_value_of_the_convolution(
    pads: tuple[int, ...], dilations: tuple[int, int], batch: int, group: int, side: int
) -> None:
    conv = Conv(pads=pads, dilations=dilations, group=group)
    for outputs, height, width in ((1, 9, 11), (3, 13, 10)):
        x = variable("x", (batch, 2 * group, height, width))
        k = variable("k", (group * outputs, 2, 3, 3), constant=True)
        direct, tiled = conv(x, k), by_tiles_of_phases(conv, x, k, side)
        assert tiled.type == direct.type
        for ring in (FIELD, FLOAT):
            values = sample((direct,), ring, seed=height)
            found, expected = (evaluate(term, ring, values) for term in (tiled, direct))
            assert np.array_equal(found, expected) if ring is FIELD else np.allclose(found, expected), x


def _offered(channels: int, size: int, dilation: int, batch: Dim = 1) -> Term | None:
    x = variable("x", (batch, channels, size, size))
    k = variable("k", (channels, channels, 3, 3), constant=True)
    return dilated_by_tiles(Conv(pads=(dilation,) * 4, dilations=(dilation, dilation)), x, k)


def test_it_is_offered_where_many_channels_meet_and_each_phase_has_some_places() -> None:
    assert _offered(256, 28, 2)
    assert _offered(512, 28, 4)
    assert not _offered(64, 28, 2), "few channels"
    assert not _offered(256, 28, 18), "phases of one place or two"
    assert not _offered(256, 28, 1), "what tiles are for"


def test_of_a_number_of_images_that_is_a_symbol_it_is_that_of_any_number() -> None:
    with assuming():
        open_batch = _offered(128, 16, 2, symbol("n"))
    assert open_batch is not None
    for count in (1, 3):
        assert resize((open_batch,), {"n": count}) == (_offered(128, 16, 2, count),)
