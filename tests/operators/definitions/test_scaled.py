"""Rows and columns are scaled after a product, where each has a factor of its own and that may save something."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, helper

import superopt
from superopt.api import Options
from superopt.demands import assuming
from superopt.dim import Dim, symbol
from superopt.operators.definitions.scaled import of_scaled_columns, of_scaled_rows
from superopt.operators.layout import Expand
from superopt.operators.matmul import MatMul
from superopt.operators.pointwise import Add, Binary, Div, Mul
from superopt.term import Term, variable
from tests.models import assert_same, model, weight
from tests.operators.definitions.equality import assert_equal

STACKS = [(), (2,), (2, 3)]

each_scaling = pytest.mark.parametrize("op", [Div(), Mul()], ids=lambda op: op.name)
each_stack = pytest.mark.parametrize("stack", STACKS, ids=str)


def scaled(op: Binary, x: Term, *axes: int) -> Term:
    """A term scaled by what has these of its axes."""
    return op(x, Expand(axes, x.shape)(variable("r", tuple(x.shape[a] for a in axes))))


def rows(op: Binary, stack: tuple[Dim, ...], *axes: int) -> Term:
    return scaled(op, variable("x", (*stack, 4, 6)), *axes)


def weights(stack: tuple[Dim, ...], narrow: int = 5) -> Term:
    return variable("w", (*stack, 6, narrow))


@each_scaling
@each_stack
def test_rows_are_scaled_after_a_product_that_narrows(op: Binary, stack: tuple[int, ...]) -> None:
    x, w = rows(op, stack, *range(len(stack) + 1)), weights(stack)
    assert assert_equal(of_scaled_rows(MatMul(), x, w), MatMul()(x, w)).operator == op


@each_scaling
def test_what_scales_all_rows_of_a_matrix_does_so_after(op: Binary) -> None:
    x, w = rows(op, (2,), 0), weights((2,))
    assert_equal(of_scaled_rows(MatMul(), x, w), MatMul()(x, w))


@each_scaling
@each_stack
def test_columns_are_scaled_after_a_product_that_leaves_fewer_rows(op: Binary, stack: tuple[int, ...]) -> None:
    rank = len(stack) + 2
    x, y = variable("x", (*stack, 3, 6)), scaled(op, weights(stack), *range(rank - 2), rank - 1)
    assert assert_equal(of_scaled_columns(MatMul(), x, y), MatMul()(x, y)).operator == op


def test_the_first_of_two_factors_may_be_the_row_s() -> None:
    x, w = rows(Mul(), (), 0), weights(())
    turned = Mul()(*reversed(x.inputs))
    assert_equal(of_scaled_rows(MatMul(), turned, w), MatMul()(turned, w))


def test_products_are_scaled_later_whatever_follows() -> None:
    x, w = scaled(Div(), MatMul()(variable("a", (4, 4)), variable("x", (4, 6))), 0), weights((), 9)
    assert_equal(of_scaled_rows(MatMul(), x, w), MatMul()(x, w))


def test_how_many_rows_there_are_may_be_a_symbol() -> None:
    n = symbol("n")
    with assuming():
        x = scaled(Div(), variable("x", (n, 6)), 0)
        found = of_scaled_rows(MatMul(), x, weights(()))
    assert found is not None
    assert found.shape == (n, 5)


def test_of_widths_that_are_symbols_nothing_is_known() -> None:
    with assuming():
        x = scaled(Div(), variable("x", (4, symbol("k"))), 0)
        assert of_scaled_rows(MatMul(), x, variable("w", (symbol("k"), symbol("n")))) is None


@pytest.mark.parametrize(
    "found",
    [
        of_scaled_rows(MatMul(), rows(Div(), (), 1), weights(())),
        of_scaled_rows(MatMul(), rows(Div(), (), 0), weights((), 6)),
        of_scaled_rows(MatMul(), rows(Div(), ()), weights(())),
        of_scaled_rows(MatMul(), rows(Add(), (), 0), weights(())),
        of_scaled_rows(MatMul(), Div()(*reversed(rows(Div(), (), 0).inputs)), weights(())),
        of_scaled_rows(MatMul(), Div()(variable("x", (4, 6)), variable("y", (4, 6))), weights(())),
        of_scaled_columns(MatMul(), variable("x", (3, 6)), scaled(Div(), weights(()), 0)),
    ],
    ids=["a column's", "no fewer", "a number", "a sum", "a dividend", "each its own", "a row's"],
)  # fmt: skip
def test_else_nothing_is_scaled_later(found: Term | None) -> None:
    assert found is None


def mean_of_neighbours(nodes: int, features: int, narrow: int) -> onnx.ModelProto:
    steps = [
        helper.make_node("MatMul", ["adjacency", "x"], ["total"]),
        helper.make_node("Div", ["total", "degree"], ["mean"]),
        helper.make_node("MatMul", ["mean", "w"], ["y"]),
    ]
    inputs = {"adjacency": [nodes, nodes], "x": [nodes, features], "degree": [nodes, 1]}
    return model(
        steps,
        [(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
        [("y", TensorProto.FLOAT, [nodes, narrow])],
        {"w": weight(features, narrow)},
    )


def test_a_mean_of_neighbours_is_taken_of_narrowed_features(options: Options) -> None:
    source = mean_of_neighbours(128, 256, 16)
    result = superopt.optimize(source, options)
    assert result.report.outcome == "faster"
    assert_same(result.proto(), source)
    assert [node.op_type for node in result.proto().graph.node] == ["MatMul", "MatMul", "Div"]
