"""Moves that leave elements where they are become one reshape, and others do not."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from superopt.arithmetic import FLOAT
from superopt.evaluate import evaluate
from superopt.operators.layout import Reshape, Transpose
from superopt.operators.views import as_a_reshape, of_a_reshape
from superopt.term import Term, variable, variables

SHAPES = ((1, 1, 3, 2), (1, 2, 1, 3), (2, 3, 1, 2), (2, 2, 3))


def value(term: Term) -> np.ndarray:
    (x,) = variables(term)
    shape = tuple(map(int, x.shape))  # type: ignore[arg-type]
    return evaluate(term, FLOAT, {x: np.arange(np.prod(shape), dtype=np.float64).reshape(shape)})


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_transpose_is_a_reshape_exactly_where_the_elements_stay_in_their_order(shape: tuple[int, ...]) -> None:
    x, seen = variable("x", shape), {True: 0, False: 0}
    for perm in itertools.permutations(range(len(shape))):
        made, moved = as_a_reshape(Transpose(perm), x), value(Transpose(perm)(x))
        stays = list(moved.ravel()) == sorted(moved.ravel())
        assert (made is not None) == stays, perm
        if made is not None:
            assert made is x or isinstance(made.operator, Reshape)
            np.testing.assert_array_equal(value(made), moved)
        seen[stays] += 1
    assert min(seen.values()) > 0


def test_a_reshape_of_a_reshape_reads_what_that_reads() -> None:
    x = variable("x", (2, 6))
    inner = Reshape((3, 4))(x)
    assert of_a_reshape(Reshape((12,)), inner) == Reshape((12,))(x)
    assert of_a_reshape(Reshape((2, 6)), inner) == x
    assert of_a_reshape(Reshape((12,)), x) is None


def test_a_transposed_row_of_heads_that_was_reshaped_is_one_reshape() -> None:
    x = variable("x", (1, 1, 6))
    assert as_a_reshape(Transpose((0, 2, 1, 3)), Reshape((1, 1, 3, 2))(x)) == Reshape((1, 3, 1, 2))(x)
