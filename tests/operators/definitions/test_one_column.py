"""Products of single columns, and with one, are products of rows, and of nothing else are they."""

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
from superopt.operators.definitions.one_column import (
    FEWEST,
    of_one_column_and_one_row,
    of_single_columns,
    with_one_column,
)
from superopt.operators.layout import Expand
from superopt.operators.matmul import MatMul
from superopt.term import Term, subterms, variable
from tests.models import assert_same, model, weight
from tests.operators.definitions.equality import assert_equal

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


ONE = variable("w", (6, 1), constant=True)


def rows(*before: Dim, constant: bool = False) -> Term:
    return variable("x", (*before, 6), constant=constant)


def stacked(w: Term, *stack: int) -> Term:
    """A matrix, the same for all of a stack."""
    rank = len(stack) + 2
    return Expand((rank - 2, rank - 1), (*stack, *w.shape))(w)


WITH_ONE = {
    "of rows": (rows(FEWEST), ONE),
    "of a stack": (rows(2, FEWEST), stacked(ONE, 2)),
    "of stacks of stacks": (rows(3, 2, FEWEST), stacked(ONE, 3, 2)),
}


@pytest.mark.parametrize(("x", "w"), WITH_ONE.values(), ids=WITH_ONE)
def test_a_layer_of_one_result_is_a_row_times_all_that_it_weighs(x: Term, w: Term) -> None:
    found = assert_equal(with_one_column(MatMul(), x, w), MatMul()(x, w))
    assert [t.shape[0] for t in subterms(found) if isinstance(t.operator, MatMul)] == [1]


def test_how_many_rows_it_weighs_may_be_a_symbol() -> None:
    n = symbol("n")
    with assuming():
        found = with_one_column(MatMul(), rows(n), ONE)
    assert found is not None
    assert found.shape == (n, 1)


@pytest.mark.parametrize(
    ("x", "w"),
    [
        (rows(FEWEST - 1), ONE),
        (rows(FEWEST), variable("w", (6, 2), constant=True)),
        (rows(FEWEST), variable("w", (6, 1))),
        (rows(FEWEST, constant=True), ONE),
        (rows(2, FEWEST), variable("w", (2, 6, 1), constant=True)),
        (variable("x", (FEWEST, 1)), variable("w", (1, 1), constant=True)),
    ],
    ids=["few rows", "two results", "computed weights", "constant rows", "weights for each", "of one number"],
)
def test_no_other_layer_is_a_row_times_what_it_weighs(x: Term, w: Term) -> None:
    assert with_one_column(MatMul(), x, w) is None


def test_a_layer_of_one_result_is_computed_faster_and_is_the_same(options: Options) -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Add", ["a", "b"], ["c"]),
        helper.make_node("Sigmoid", ["c"], ["y"]),
    ]
    ends = [("x", TensorProto.FLOAT, [8, 128, 512]), ("y", TensorProto.FLOAT, [8, 128, 1])]
    given = model(nodes, ends[:1], ends[1:], {"w": weight(512, 1), "b": weight(1)})
    result = superopt.optimize(given, options)
    assert result.report.outcome == "faster"
    assert_same(result.proto(), given)


@pytest.mark.parametrize("stack", [(), *STACKS], ids=str)
@pytest.mark.parametrize(("rows", "columns"), [(5, 4), (5, 1), (1, 4), (1, 1)])
def test_a_column_and_a_row_are_each_number_times_each(stack: tuple[int, ...], rows: int, columns: int) -> None:
    x, y = variable("x", (*stack, rows, 1)), variable("y", (*stack, 1, columns))
    found = assert_equal(of_one_column_and_one_row(MatMul(), x, y), MatMul()(x, y))
    assert not any(isinstance(t.operator, MatMul) for t in subterms(found))


def test_how_many_columns_and_rows_there_are_may_stay_open() -> None:
    with assuming():
        n = symbol("n")
        found = of_one_column_and_one_row(MatMul(), variable("x", (n, 5, 1)), variable("y", (n, 1, 4)))
    assert found is not None
    assert found.shape == (n, 5, 4)


def test_sums_of_products_are_left() -> None:
    assert of_one_column_and_one_row(MatMul(), variable("x", (3, 5, 2)), variable("y", (3, 2, 4))) is None


def test_a_step_of_a_state_space_model_is_faster_and_the_same(options: Options) -> None:
    """What goes into the states, of each channel and step: `Δ·x·B` (Gu & Dao 2023)."""
    size, states = [1, 64, 64], 16
    nodes = [
        helper.make_node("Unsqueeze", ["x", "last"], ["columns"]),
        helper.make_node("Unsqueeze", ["columns", "last"], ["single"]),
        helper.make_node("Unsqueeze", ["b", "before"], ["rows"]),
        helper.make_node("Unsqueeze", ["rows", "last"], ["stack"]),
        helper.make_node("MatMul", ["stack", "single"], ["products"]),
        helper.make_node("Squeeze", ["products", "last"], ["y"]),
    ]
    ends = [("x", TensorProto.FLOAT, size), ("b", TensorProto.FLOAT, [1, 64, states])]
    given = model(
        nodes, ends, [("y", TensorProto.FLOAT, [*size, states])], {"last": np.array([-1]), "before": np.array([2])}
    )
    result = superopt.optimize(given, options)
    assert result.report.outcome == "faster"
    assert "MatMul" not in {node.op_type for node in result.proto().graph.node}
    assert_same(result.proto(), given)
