"""Moves that leave elements where they are become one reshape, and others do not."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from superopt.arithmetic.floats import FLOAT
from superopt.evaluate import evaluate
from superopt.operators.definitions.views import as_a_reshape, of_a_reshape, of_a_stack
from superopt.operators.layout import Concat, Reshape, Transpose
from superopt.term import Term, subterms, variable, variables

SHAPES = ((1, 1, 3, 2), (1, 2, 1, 3), (2, 3, 1, 2), (2, 2, 3))


def value(term: Term) -> np.ndarray:
    values, first = dict[Term, np.ndarray](), 0.0
    for x in variables(term):
        shape = tuple(map(int, x.shape))  # type: ignore[arg-type]
        values[x] = first + np.arange(np.prod(shape), dtype=np.float64).reshape(shape)
        first += values[x].size
    return evaluate(term, FLOAT, values)


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


@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize("groups", [(1, 1), (1, 2), (2, 2)], ids=str)
def test_what_is_joined_to_be_transposed_is_transposed_as_it_is_joined(axis: int, groups: tuple[int, int]) -> None:
    shapes = [[(2, 3, 5)[a] * (g if a == axis else 1) for a in range(3)] for g in groups]
    x, y = (variable(n, s) for n, s in zip("xy", shapes, strict=True))
    parted = Reshape((*shapes[0][:axis], sum(groups), (2, 3, 5)[axis], *shapes[0][axis + 1 :]))
    for perm in itertools.permutations(range(4)):
        term = Transpose(perm)(parted(Concat(axis)(x, y)))
        made = of_a_stack(Transpose(perm), term.inputs[0])
        assert made is not None
        assert isinstance(made.operator, Concat)
        np.testing.assert_array_equal(value(made), value(term))


def test_channels_of_two_are_shuffled_by_joining_them_on_an_axis_of_their_own() -> None:
    x, y = (variable(n, (1, 58, 28, 28), "float32") for n in "xy")
    made = of_a_stack(Transpose((0, 2, 1, 3, 4)), Reshape((1, 2, 58, 28, 28))(Concat(1)(x, y)))
    assert made is not None
    assert sorted(t.operator.name for t in subterms(made) if t.inputs) == ["concat", "reshape", "reshape"]


def test_what_is_parted_otherwise_is_not_transposed_apart() -> None:
    x, y = variable("x", (2, 4)), variable("y", (2, 2))
    perm = Transpose((0, 2, 1))
    assert of_a_stack(perm, Reshape((2, 2, 3))(Concat(1)(x, y))) is None
    assert of_a_stack(perm, Reshape((1, 2, 6))(Concat(1)(x, y))) is None
    assert of_a_stack(Transpose((1, 0)), Concat(1)(x, y)) is None
    assert of_a_stack(perm, Reshape((2, 3, 2))(variable("z", (2, 6)))) is None
