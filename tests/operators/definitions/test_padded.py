"""Zeros around rows and columns are not multiplied, exactly."""

from __future__ import annotations

import pytest

from superopt.demands import assuming
from superopt.dim import symbol
from superopt.operators.definitions.padded import of_padded_columns, of_padded_rows
from superopt.operators.layout import Expand
from superopt.operators.matmul import MatMul
from superopt.operators.padding import Pad
from superopt.term import Term, subterms, variable
from tests.operators.definitions.equality import assert_equal

STACKS = [(), (2,), (2, 3)]
WIDTHS = [(0, 3), (3, 0), (1, 2)]

each_stack = pytest.mark.parametrize("stack", STACKS, ids=str)
each_width = pytest.mark.parametrize("width", WIDTHS, ids=str)


def padded(x: Term, axis: int, width: tuple[int, int]) -> Term:
    """Zeros before and behind what is there, along an axis."""
    pads = [0] * (2 * x.type.rank)
    pads[axis], pads[axis + x.type.rank] = width
    return Pad(tuple(pads))(x)


def assert_without_zeros(found: Term | None, wanted: Term) -> None:
    found = assert_equal(found, wanted)
    assert not any(isinstance(t.operator, Pad) for t in subterms(found))


@each_stack
@each_width
def test_zeros_around_rows_are_not_multiplied(stack: tuple[int, ...], width: tuple[int, int]) -> None:
    x, w = padded(variable("x", (*stack, 4, 2)), len(stack) + 1, width), variable("w", (*stack, 5, 6))
    assert_without_zeros(of_padded_rows(MatMul(), x, w), MatMul()(x, w))


@each_stack
@each_width
def test_zeros_around_columns_are_not_multiplied(stack: tuple[int, ...], width: tuple[int, int]) -> None:
    x, w = variable("x", (*stack, 6, 5)), padded(variable("w", (*stack, 2, 4)), len(stack), width)
    assert_without_zeros(of_padded_columns(MatMul(), x, w), MatMul()(x, w))


def test_of_weights_that_are_repeated_the_rows_are_cut_before_that() -> None:
    x = padded(variable("x", (3, 4, 2)), 2, (1, 2))
    w = Expand((1, 2), (3, 5, 6))(variable("w", (5, 6), constant=True))
    found = of_padded_rows(MatMul(), x, w)
    assert_without_zeros(found, MatMul()(x, w))
    assert found is not None
    assert isinstance(found.inputs[1].operator, Expand)


def test_a_row_may_be_of_any_length() -> None:
    n = symbol("n")
    x = padded(variable("x", (4, n)), 1, (1, 2))
    with assuming():  # that it is not empty
        found = of_padded_rows(MatMul(), x, variable("w", (n + 3, 6)))
    assert found is not None
    assert found.shape == (4, 6)


def test_zeros_along_other_axes_stay() -> None:
    w = variable("w", (2, 6))
    assert of_padded_rows(MatMul(), padded(variable("x", (4, 2)), 0, (1, 2)), w) is None
    assert of_padded_columns(MatMul(), variable("x", (4, 2)), padded(w, 1, (1, 2))) is None


def test_what_is_not_padded_stays() -> None:
    x, w = variable("x", (4, 2)), variable("w", (2, 6))
    assert of_padded_rows(MatMul(), x, w) is None
    assert of_padded_columns(MatMul(), x, w) is None
