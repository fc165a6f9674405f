"""The size of weights: each once, as it is after what constants are made of was computed."""

from __future__ import annotations

from superopt.cost.weights import WeightsCost
from superopt.operators.layout import Expand
from superopt.operators.matmul import MatMul
from superopt.operators.pointwise import Add
from superopt.term import Graph, Term, variable

X = variable("x", (8, 4), "float32")
V, W = (variable(name, (4, 4), "float32", constant=True) for name in "vw")
BIAS = variable("b", (4,), "float32", constant=True)


def size(*outputs: Term) -> float:
    return WeightsCost().cost(Graph((X, V, W, BIAS), outputs))


def test_a_weight_that_several_read_counts_once() -> None:
    assert size(MatMul()(X, W)) == size(MatMul()(MatMul()(X, W), W)) == 64


def test_weights_count_as_what_they_are_made_into() -> None:
    assert size(Add()(MatMul()(X, V), MatMul()(X, W))) == 128
    assert size(MatMul()(X, Add()(V, W))) == 64
    assert size(MatMul()(X, Add()(V, W)), MatMul()(X, V)) == 128


def test_what_is_only_repeated_counts_once() -> None:
    assert size(Add()(X, Expand((1,), (8, 4))(BIAS))) == 16


def test_a_constant_output_is_kept_too() -> None:
    assert size(X, Add()(V, W)) == 64


def test_the_kernels_add_up_to_all_weights_or_more() -> None:
    graph = Graph((X, W, BIAS), (Add()(MatMul()(MatMul()(X, W), W), Expand((1,), (8, 4))(BIAS)),))
    assert sum(part for _, part in WeightsCost().breakdown(graph)) >= WeightsCost().cost(graph) == 80
