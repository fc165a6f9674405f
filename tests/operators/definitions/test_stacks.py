"""Stacks of products of few numbers are sums of products, and of nothing else are they."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from superopt.arithmetic.field import FIELD
from superopt.demands import assuming
from superopt.dim import Dim, symbol
from superopt.evaluate import evaluate, sample
from superopt.operators.definitions.stacks import (
    of_few_columns_and_rows,
    of_rows_and_columns,
    of_rows_and_small_matrices,
    of_small_matrices,
)
from superopt.operators.matmul import MatMul
from superopt.term import Term, subterms, variable

Defining = Callable[[MatMul, Term, Term], Term | None]
STACKS: list[tuple[Dim, ...]] = [(4,), (2, 3), (1, 4)]
SIZES: dict[tuple[int, int, int], Defining] = {
    (1, 7, 1): of_rows_and_columns,
    (1, 1, 1): of_rows_and_columns,
    (3, 4, 1): of_small_matrices,
    (1, 4, 3): of_rows_and_small_matrices,
    (3, 1, 4): of_few_columns_and_rows,
    (1, 1, 3): of_few_columns_and_rows,
}


def factors(stack: tuple[Dim, ...], m: Dim, k: Dim, n: Dim, constant: bool = False) -> tuple[Term, Term]:
    return variable("x", (*stack, m, k)), variable("y", (*stack, k, n), constant=constant)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("stack", STACKS, ids=str)
def test_a_stack_is_a_sum_of_products(stack: tuple[int, ...], sizes: tuple[int, int, int]) -> None:
    x, y = factors(stack, *sizes)
    found, wanted = SIZES[sizes](MatMul(), x, y), MatMul()(x, y)
    assert found is not None
    assert found.type == wanted.type
    assert not any(isinstance(t.operator, MatMul) for t in subterms(found))
    values = sample((found, wanted), FIELD, 0)
    np.testing.assert_array_equal(evaluate(found, FIELD, values), evaluate(wanted, FIELD, values))


def test_how_many_there_are_and_how_long_they_are_may_be_symbols() -> None:
    n, k = symbol("n"), symbol("k")
    with assuming():
        found = of_rows_and_columns(MatMul(), *factors((n,), 1, k, 1))
    assert found is not None
    assert found.shape == (n, 1, 1)


@pytest.mark.parametrize(
    ("define", "given"),
    [
        (of_rows_and_columns, factors((4,), 2, 7, 1)),
        (of_rows_and_columns, factors((4,), 1, 7, 1, constant=True)),
        (of_rows_and_columns, factors((1,), 1, 7, 1)),
        (of_rows_and_columns, factors((), 1, 7, 1)),
        (of_small_matrices, factors((4,), 3, 5, 1)),
        (of_small_matrices, factors((4,), 3, 3, 3)),
        (of_small_matrices, factors((4,), 1, 3, 1)),
        (of_rows_and_small_matrices, factors((4,), 1, 3, 5)),
        (of_rows_and_small_matrices, factors((4,), 2, 3, 3)),
        (of_few_columns_and_rows, factors((4,), 3, 1, 5)),
        (of_few_columns_and_rows, factors((4,), 3, 2, 3)),
    ],
    ids=[
        "two rows",
        "weights",
        "one pair",
        "no stack",
        "wide",
        "of matrices",
        "of rows",
        "long",
        "of more rows",
        "many",
        "of two columns",
    ],
)
def test_else_products_stay(define: Defining, given: tuple[Term, Term]) -> None:
    assert define(MatMul(), *given) is None
