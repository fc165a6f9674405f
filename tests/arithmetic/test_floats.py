"""Products in floating point: of what is one for a whole batch, and is not widened for each."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from numpy.random import default_rng

from superopt.arithmetic.floats import FLOAT
from superopt.evaluate import evaluate, sample
from superopt.operators.conv import Conv
from superopt.operators.layout import Expand
from superopt.operators.transposed import ConvTranspose
from superopt.term import variable


def test_one_matrix_for_all_in_a_batch_is_widened_once() -> None:
    """As exporters of attention leave it: weights of 32 bits for each of hundreds of rows."""
    rng = default_rng(0)
    x, one = rng.standard_normal((300, 1, 64)), rng.standard_normal((64, 1024)).astype(np.float32)
    tracemalloc.start()
    found = FLOAT.matmul(x, np.broadcast_to(one, (300, 64, 1024)))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    np.testing.assert_allclose(found, x @ one.astype(np.float64))
    assert most < 3 * found.nbytes < 300 * one.nbytes


def test_a_batch_of_nothing_has_a_product_of_nothing() -> None:
    assert FLOAT.matmul(np.ones((0, 2, 3)), np.broadcast_to(np.ones((3, 4)), (0, 3, 4))).shape == (0, 2, 4)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ((1, 3, 4), (2, 4, 5)),
        ((3, 4), (2, 4, 5)),
        ((2, 3, 4), (1, 2, 4, 5)),
        ((2, 1, 3, 4), (2, 6, 4, 5)),
        ((4,), (2, 4, 5)),
    ],
)
def test_a_repeated_matrix_is_multiplied_by_as_many_as_there_are(x: tuple[int, ...], y: tuple[int, ...]) -> None:
    rng = default_rng(0)
    one, several = rng.standard_normal(x), np.broadcast_to(rng.standard_normal(y[-2:]), y)
    np.testing.assert_allclose(FLOAT.matmul(one, several), np.matmul(one, several))


@pytest.mark.parametrize("axes", [(1, 2, 3), (0, 2, 3), (1, 3), (2, 3)], ids=str)
@pytest.mark.parametrize("made", [Conv, ConvTranspose])
def test_images_that_are_repeated_are_convolved_as_others_are(
    made: type[Conv | ConvTranspose], axes: tuple[int, ...]
) -> None:
    op = made((1, 1), (0,) * 4, (1, 1), 1)
    shape = (3, 4, 5, 6)
    image, kernel = variable("x", tuple(shape[a] for a in axes)), variable("k", (4, 4, 1, 1))
    repeated = Expand(axes, shape)(image)
    values = sample((op(repeated, kernel),), FLOAT, 0)
    whole = variable("whole", shape)
    given = {whole: np.array(evaluate(repeated, FLOAT, values)), kernel: values[kernel]}
    found, wanted = evaluate(op(repeated, kernel), FLOAT, values), evaluate(op(whole, kernel), FLOAT, given)
    np.testing.assert_allclose(found, wanted)
