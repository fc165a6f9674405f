"""The analytic cost: the right order, and the same everywhere."""

import pytest

from superopt.cost.analytic import AnalyticCost
from superopt.demands import assuming
from superopt.dim import symbol
from superopt.errors import ShapeError
from superopt.operators.conv import Conv
from superopt.operators.layout import Concat
from superopt.operators.matmul import MatMul
from superopt.operators.pointwise import Add, Mul
from superopt.term import make
from tests.cost.graphs import conv_block, graph, tensor, weight


def test_cost_is_the_sum_over_kernels() -> None:
    cost = AnalyticCost()
    g = graph(conv_block(conv_block(tensor("x", 1, 4, 8, 8), "a", 4), "b", 4))
    parts = [seconds for _, seconds in cost.breakdown(g)]
    assert len(parts) == 2
    assert cost.cost(g) == sum(parts) > 0


def test_one_wide_product_costs_less_than_two() -> None:
    a, b, c = tensor("a", 64, 64), weight("b", 64, 64), weight("c", 64, 64)
    two = graph(make(MatMul(), (a, b)), make(MatMul(), (a, c)))
    one = graph(make(MatMul(), (a, make(Concat(1), (b, c)))))
    assert AnalyticCost().cost(one) < AnalyticCost().cost(two)


def test_the_cheaper_order_of_a_chain_of_products_costs_less() -> None:
    a, b, c = tensor("a", 512, 4), tensor("b", 4, 512), tensor("c", 512, 4)
    left = graph(make(MatMul(), (make(MatMul(), (a, b)), c)))
    right = graph(make(MatMul(), (a, make(MatMul(), (b, c)))))
    assert AnalyticCost().cost(right) < AnalyticCost().cost(left)


def test_symbolic_sizes_take_the_values_that_are_given() -> None:
    n = symbol("n")
    g = graph(make(Add(), (tensor("x", n, 1000), make(Mul(), (tensor("y", n, 1000), tensor("y", n, 1000))))))
    costs = [AnalyticCost(sizes=sizes).cost(g) for sizes in ({}, {"n": 1}, {"n": 100})]
    assert costs[0] == costs[1] < costs[2]


def test_sizes_that_do_not_fit_are_an_error() -> None:
    n = symbol("n")
    with assuming():
        g = graph(make(Conv(), (tensor("x", 1, 4, n, n), weight("k", 4, 4, 5, 5))))
    assert AnalyticCost(sizes={"n": 6}).cost(g) > 0
    with pytest.raises(ShapeError):
        AnalyticCost(sizes={"n": 4}).cost(g)
