"""What is gathered is multiplied before, exactly, where that is less."""

from __future__ import annotations

import numpy as np
import pytest

from superopt.arithmetic.field import FIELD
from superopt.arithmetic.floats import FLOAT
from superopt.demands import assuming
from superopt.dim import Dim, symbol
from superopt.evaluate import evaluate, sample
from superopt.operators.activations import Gelu
from superopt.operators.conv import Conv
from superopt.operators.differences import Sub
from superopt.operators.functions import Tanh
from superopt.operators.layout import Concat, Expand, Reshape, Transpose
from superopt.operators.matmul import MatMul
from superopt.operators.picks import Take
from superopt.operators.pointwise import Add, Mul, Relu
from superopt.operators.rearrange import Gather
from superopt.search.rewriting.finders.gathered import Gathering
from superopt.search.rewriting.rewrites import Less, rewrites_of
from superopt.term import Term, subterms, variable

NODES, EACH, WIDTH, RESULTS = 3, 4, 5, 6
X, I = variable("x", (NODES, WIDTH)), variable("i", (NODES, EACH), "int64")
EDGES, FLAT = Gather(0)(X, I), variable("j", (NODES * EACH,), "int64")
OWN = Expand((0, 2), (NODES, EACH, WIDTH))(X)
CONCAT = Concat(2)(OWN, Sub()(EDGES, OWN))
PICTURE = Transpose((0, 3, 1, 2))(Reshape((1, NODES, EACH, 2 * WIDTH))(CONCAT))
OTHERS = variable("o", (NODES, WIDTH))
PAIRS = Concat(2)(Expand((0, 2), (NODES, NODES, WIDTH))(X), Expand((1, 2), (NODES, NODES, WIDTH))(OTHERS))
STACKED = Reshape((1, NODES, NODES, 2 * WIDTH))(PAIRS)
DONE = variable("d", (NODES, EACH, WIDTH))
BESIDE = Concat(2)(Concat(2)(Concat(2)(OWN, DONE), Sub()(OWN, DONE)), Mul()(OWN, DONE))


def weight(*shape: Dim) -> Term:
    return variable("w", shape, constant=True)


def stacked(x: Term) -> Term:
    """A product of a stack of rows with one matrix."""
    rank, shape = x.type.rank, (x.shape[-1], RESULTS)
    return MatMul()(x, Expand((rank - 2, rank - 1), (*x.shape[:-2], *shape))(weight(*shape)))


def single(x: Term, padded: int = 0) -> Term:
    return Conv((1, 1), (padded,) * 4)(x, weight(RESULTS, x.shape[1], 1, 1))


TAKEN = {
    "rows": MatMul()(Gather(0)(X, FLAT), weight(WIDTH, RESULTS)),
    "rows of each node": stacked(EDGES),
    "rows by constant places": MatMul()(Take(0, (2, 1, 0, 1, 2))(X), weight(WIDTH, RESULTS)),
    "reshaped": stacked(Reshape((NODES, EACH, WIDTH))(Gather(0)(X, FLAT))),
    "a difference": stacked(Sub()(EDGES, OWN)),
    "joined": stacked(CONCAT),
    "joined with what is of an edge": stacked(Concat(2)(EDGES, variable("e", (NODES, EACH, 2)))),
    "a picture": single(PICTURE),
    "each beside each": stacked(PAIRS),
    "each beside each of a stack": stacked(STACKED),
    "each beside each, by a row": MatMul()(
        weight(1, 2 * WIDTH), Transpose((1, 0))(Reshape((NODES * NODES, 2 * WIDTH))(PAIRS))
    ),
    "each beside each, as rows": MatMul()(Reshape((NODES * NODES, 2 * WIDTH))(PAIRS), weight(2 * WIDTH, RESULTS)),
    "a candidate beside what was done": stacked(BESIDE),
    "less what is of an edge": stacked(Concat(2)(EDGES, Sub()(EDGES, variable("e", (NODES, EACH, WIDTH))))),
    "each beside words of a table": stacked(Concat(2)(OWN, Gather(0)(variable("t", (99, WIDTH), constant=True), I))),
    "channels first": single(Gather(2)(variable("p", (1, WIDTH, 2, NODES)), FLAT)),
}
LEFT = {
    "fewer are gathered": MatMul()(Gather(0)(X, variable("k", (2,), "int64")), weight(WIDTH, RESULTS)),
    "as many are gathered": MatMul()(Gather(0)(X, variable("k", (NODES,), "int64")), weight(WIDTH, RESULTS)),
    "channels are gathered": MatMul()(Gather(1)(X, FLAT), weight(NODES * EACH, RESULTS)),
    "bent with what is of an edge": stacked(Relu()(Add()(EDGES, variable("e", (NODES, EACH, WIDTH))))),
    "functions of as many": stacked(Relu()(Gather(0)(X, variable("k", (1, NODES), "int64")))),
    "padded": single(PICTURE, padded=1),
    "a sum with what is of an edge": stacked(Add()(EDGES, variable("e", (NODES, EACH, WIDTH)))),
    "matrices are not one": MatMul()(EDGES, weight(NODES, WIDTH, RESULTS)),
    "nothing is gathered": stacked(Relu()(Concat(2)(DONE, DONE))),
}  # fmt: skip

WORDS = (Gather(1)(variable("s", (1, NODES, WIDTH)), FLAT), Gather(1)(variable("e", (1, NODES, WIDTH)), FLAT))
BENT = {
    "gathered": stacked(Relu()(EDGES)),
    "repeated": stacked(Relu()(OWN)),
    "joined": stacked(Relu()(Concat(2)(*WORDS))),
    "each by itself": stacked(Concat(2)(*(Tanh()(word) for word in WORDS))),
    "one after the other": stacked(Tanh()(Relu()(Concat(2)(*WORDS)))),
    "of several operators": stacked(Gelu()(Concat(2)(*WORDS))),
    "moved": stacked(Relu()(Reshape((NODES, EACH, 2 * WIDTH))(Concat(2)(*WORDS)))),
    "at constant places": MatMul()(Relu()(Take(0, (2, 1, 0, 1, 2))(X)), weight(WIDTH, RESULTS)),
    "joined with what is of an edge": stacked(Relu()(Concat(2)(EDGES, DONE))),
}


@pytest.mark.parametrize("name", TAKEN)
def test_what_is_gathered_is_multiplied_before(name: str) -> None:
    term = TAKEN[name]
    made = Gathering().of(term)
    assert made is not None
    assert made.type == term.type
    values = sample((made, term), FIELD, 0)
    np.testing.assert_array_equal(evaluate(made, FIELD, values), evaluate(term, FIELD, values))


@pytest.mark.parametrize("name", BENT)
def test_functions_of_each_number_are_done_before_too(name: str) -> None:
    term = BENT[name]
    made = Gathering().of(term)
    assert made is not None
    assert made.type == term.type
    rows = [t.inputs[0].shape[0] for t in subterms(made) if isinstance(t.operator, MatMul)]
    assert NODES in rows
    values = sample((made, term), FLOAT, 0)
    np.testing.assert_allclose(evaluate(made, FLOAT, values), evaluate(term, FLOAT, values), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", LEFT)
def test_what_is_not_less_or_not_linear_stays(name: str) -> None:
    assert Gathering().of(LEFT[name]) is None


def test_how_many_nodes_and_edges_there_are_may_be_symbols() -> None:
    x, i = variable("x", (symbol("n"), WIDTH)), variable("i", (symbol("e"),), "int64")
    made = Gathering().of(MatMul()(Gather(0)(x, i), weight(WIDTH, RESULTS)))
    assert made is not None
    assert str(made) == str(Gather(0)(MatMul()(x, weight(WIDTH, RESULTS)), i))


def test_functions_are_done_before_what_is_of_open_sizes() -> None:
    words, each = symbol("n"), (symbol("n"), symbol("e"), WIDTH)
    x, i = variable("x", (words, WIDTH)), variable("i", each[:2], "int64")
    with assuming():
        term = stacked(Relu()(Concat(2)(Gather(0)(x, i), Expand((0, 2), each)(x))))
    made = Gathering().of(term)
    assert made is not None
    assert {t.inputs[0].shape for t in subterms(made) if isinstance(t.operator, MatMul)} == {(words, WIDTH)}


def test_a_constant_table_is_not_multiplied_where_it_may_be_the_larger() -> None:
    table = variable("t", (1000, WIDTH), constant=True)
    i = variable("i", (symbol("e"),), "int64")
    assert Gathering().of(MatMul()(Gather(0)(table, i), weight(WIDTH, RESULTS))) is None


def test_a_long_sum_is_not_looked_through() -> None:
    total = EDGES
    for _ in range(800):
        total = Add()(total, OWN)
    assert Gathering().of(stacked(total)) is None


def test_a_node_that_is_gathered_and_taken_away_is_multiplied_once() -> None:
    made = Gathering().of(stacked(Sub()(EDGES, OWN)))
    assert made is not None
    assert sum(isinstance(t.operator, MatMul) for t in subterms(made)) == 1


def test_what_is_left_beside_a_candidate_is_multiplied_once() -> None:
    made = Gathering().of(stacked(BESIDE))
    assert made is not None
    left = [t for t in subterms(made) if isinstance(t.operator, MatMul) and t.inputs[0].shape[0] != NODES]
    assert [t.inputs[0].shape for t in left] == [(NODES * EACH, 2 * WIDTH)]


def test_a_search_looks_for_it_with_definitions_alone() -> None:
    assert Less(Gathering) in rewrites_of([], ["gelu"])
    assert Less(Gathering) not in rewrites_of([], [])
