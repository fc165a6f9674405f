"""A constant matrix times many single columns is a product of rows, and of nothing else is it."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

import superopt
from superopt.api import Options
from superopt.arithmetic.field import FIELD
from superopt.demands import assuming
from superopt.dim import Dim, symbol
from superopt.evaluate import evaluate, sample
from superopt.operators.definitions.one_column import of_single_columns
from superopt.operators.layout import Expand
from superopt.operators.matmul import MatMul
from superopt.term import Term, subterms, variable
from tests.models import assert_same, model, weight

STACKS: list[tuple[int, ...]] = [(4,), (2, 3), (1, 4)]


def matrix(stack: tuple[Dim, ...], constant: bool = True) -> Term:
    """One for all of a stack."""
    rank = len(stack) + 2
    return Expand((rank - 2, rank - 1), (*stack, 5, 6))(variable("w", (5, 6), constant=constant))


def columns(stack: tuple[Dim, ...], count: int = 1) -> Term:
    return variable("x", (*stack, 6, count))


@pytest.mark.parametrize("stack", STACKS, ids=str)
def test_columns_are_multiplied_as_rows(stack: tuple[int, ...]) -> None:
    w, x = matrix(stack), columns(stack)
    found, wanted = of_single_columns(MatMul(), w, x), MatMul()(w, x)
    assert found is not None
    assert found.type == wanted.type
    assert [t.type.rank for t in subterms(found) if isinstance(t.operator, MatMul)] == [2]
    values = sample((found, wanted), FIELD, 0)
    np.testing.assert_array_equal(evaluate(found, FIELD, values), evaluate(wanted, FIELD, values))


def test_how_many_columns_there_are_may_be_a_symbol() -> None:
    n = symbol("n")
    with assuming():
        found = of_single_columns(MatMul(), matrix((n,)), columns((n,)))
    assert found is not None
    assert found.shape == (n, 5, 1)


@pytest.mark.parametrize(
    "found",
    [
        of_single_columns(MatMul(), matrix((4,), constant=False), columns((4,))),
        of_single_columns(MatMul(), matrix((4,)), columns((4,), 2)),
        of_single_columns(MatMul(), matrix((1,)), columns((1,))),
        of_single_columns(MatMul(), variable("w", (4, 5, 6), constant=True), columns((4,))),
        of_single_columns(MatMul(), variable("w", (5, 6), constant=True), columns(())),
    ],
    ids=["a matrix that is computed", "two columns", "one matrix", "different matrices", "no stack"],
)
def test_else_columns_stay(found: Term | None) -> None:
    assert found is None


def test_layers_on_columns_are_layers_on_rows(options: Options) -> None:
    steps = [
        helper.make_node("MatMul", ["v", "x"], ["narrow"]),
        helper.make_node("Tanh", ["narrow"], ["t"]),
        helper.make_node("MatMul", ["u", "t"], ["y"]),
    ]
    weights = {"v": weight(64, 400), "u": weight(400, 64)}
    shape = [64, 400, 1]
    source = model(steps, [("x", TensorProto.FLOAT, shape)], [("y", TensorProto.FLOAT, shape)], weights)
    result = superopt.optimize(source, options)
    assert result.report.outcome == "faster"
    assert_same(result.proto(), source)
