"""What runtimes refuse where it is empty is not introduced where it may be."""

from __future__ import annotations

import pytest

from superopt.api import definitions
from superopt.cost.analytic import AnalyticCost
from superopt.demands import assuming
from superopt.dim import Dim, floor_div, symbol
from superopt.operators.conv import Conv
from superopt.operators.layout import Reshape
from superopt.operators.matmul import MatMul
from superopt.operators.meanings import SPELLINGS
from superopt.operators.normalize import Softmax
from superopt.operators.pointwise import Relu
from superopt.operators.rearrange import Transpose
from superopt.search.rewriting.empties import refusing
from superopt.search.rewriting.matching import Matching
from superopt.search.rewriting.rewrites import rewrites_of
from superopt.search.strategies.found import Found
from superopt.search.strategies.space import Space
from superopt.term import Graph, variable

N, M = symbol("n"), symbol("m")


def layer(rows: Dim) -> Graph:
    """A linear layer of so many rows."""
    x, w = variable("x", (rows, 64), "float32"), variable("w", (64, 64), "float32", constant=True)
    return Graph((x, w), (Relu()(MatMul()(x, w)),))


def attention(rows: Dim) -> Graph:
    """Attention, written out, of so many tokens."""
    q, k, v = (variable(name, (1, 2, rows, 8), "float32") for name in "qkv")
    return Graph((q, k, v), (MatMul()(Softmax(3)(MatMul()(q, Transpose((0, 1, 3, 2))(k))), v),))


def found(graph: Graph) -> set[str]:
    """The operators of all graphs one rewrite away."""
    matching = Matching(rewrites_of([], definitions(), SPELLINGS))
    near = Space(graph, matching, AnalyticCost(sizes={"n": 16, "m": 3})).neighbours(Found(graph, 0.0, ()))
    return {term.operator.name for each in near for term in each.graph.runs}


@pytest.mark.parametrize("rows", [N, N + 1, floor_div(N, 2), N - M], ids=str)
def test_a_layer_of_rows_is_a_convolution(rows: Dim) -> None:
    assert "conv" in found(layer(rows))


@pytest.mark.parametrize("rows", [N - 1, N * M - 1], ids=str)
def test_a_layer_that_has_no_rows_at_some_size_is_no_convolution(rows: Dim) -> None:
    assert "conv" not in found(layer(rows))


def test_a_convolution_that_is_refused_at_some_size_may_be_made_of_another() -> None:
    x, w = variable("x", (1, 64, 1, N - 1), "float32"), variable("w", (64, 64, 1, 1), "float32", constant=True)
    v = variable("v", (64, 64), "float32", constant=True)
    with assuming():
        made = Relu()(Conv((1, 1), (0, 0, 0, 0), (1, 1))(x, w))
        rows = MatMul()(Reshape((N - 1, 64))(Transpose((0, 2, 3, 1))(made)), v)
    assert refusing(Graph((x, w, v), (rows,)).runs)
    assert "conv" in found(Graph((x, w, v), (rows,)))


@pytest.mark.parametrize(("rows", "refused"), [(N, False), (N - 1, True), (2, False)], ids=str)
def test_attention_is_refused_where_it_may_have_no_tokens(rows: Dim, refused: bool) -> None:
    written = attention(rows)
    assert not refusing(written.runs)
    assert ("attention" in found(written)) is not refused
