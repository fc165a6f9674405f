"""Of values of which only some places are read no others are computed, and those that are read are the same."""

from __future__ import annotations

import numpy as np
import pytest

from superopt.arithmetic.floats import FLOAT
from superopt.cost.analytic import AnalyticCost
from superopt.demands import assuming
from superopt.dim import Dim, symbol
from superopt.evaluate import evaluate, sample
from superopt.operators.activations import Gelu
from superopt.operators.attention.dot_product import Attention
from superopt.operators.layout import Concat, Expand, Reshape, Transpose
from superopt.operators.matmul import MatMul
from superopt.operators.normalize import Softmax
from superopt.operators.norms import LayerNorm
from superopt.operators.picks import Every, Slice, Take
from superopt.operators.pointwise import Add, Mul, Relu
from superopt.search.rewriting.finders.picked import Picking
from superopt.search.rewriting.matching import Matching
from superopt.search.rewriting.rewrites import Less, rewrites_of
from superopt.search.strategies.found import Found
from superopt.search.strategies.space import Space
from superopt.term import Graph, Term, running, variable, variables

ROWS, WIDTH, HEADS = 6, 8, 2


def weight(label: str, *shape: Dim) -> Term:
    return variable(label, shape, constant=True)


def linear(x: Term, name: str, given: int = WIDTH) -> Term:
    taken = x.shape[-1]
    y = MatMul()(x, Expand((1, 2), (x.shape[0], taken, given))(weight(f"{name}_w", taken, given)))
    return Add()(y, Expand((2,), y.shape)(weight(f"{name}_b", given)))


def normalized(x: Term, name: str) -> Term:
    return LayerNorm(2)(x, weight(f"{name}_s", WIDTH), weight(f"{name}_o", WIDTH))


def by_heads(x: Term) -> Term:
    return Transpose((0, 2, 1, 3))(Reshape((x.shape[0], ROWS, HEADS, WIDTH // HEADS))(x))


def layer(x: Term) -> Term:
    """One of a transformer, as vision transformers have them."""
    y = normalized(x, "first")
    attended = Attention(0.5)(*(by_heads(linear(y, n)) for n in "qkv"))
    mixed = linear(Reshape(x.shape)(Transpose((0, 2, 1, 3))(attended)), "o")
    z = Add()(x, mixed)
    return Add()(z, linear(Gelu()(linear(normalized(z, "second"), "up", 4 * WIDTH)), "down"))


def rows_of(term: Term) -> dict[str, list[Dim]]:
    """Of each linear layer how many rows it computes."""
    products = [t for t in running(term) if isinstance(t.operator, MatMul)]
    return {next(v.label for v in variables(t.inputs[1])): list(t.shape[:-1]) for t in products}


def assert_equal(before: Term, after: Term) -> None:
    values = sample((before,), FLOAT, 0)
    np.testing.assert_allclose(evaluate(after, FLOAT, values), evaluate(before, FLOAT, values), rtol=1e-9, atol=1e-12)


PICKS = {"slice": Slice(1, 2, 3), "every": Every(1, 5), "take": Take(1, (4, 0))}


@pytest.mark.parametrize("pick", PICKS.values(), ids=PICKS)
@pytest.mark.parametrize("images", [2, symbol("n")], ids=["known", "symbolic"])
def test_of_a_layer_of_which_some_rows_are_read_only_keys_and_values_are_computed_for_all(
    pick: Slice | Every | Take, images: Dim
) -> None:
    with assuming():  # that there are any
        term = pick(layer(variable("x", (images, ROWS, WIDTH))))
    made = Picking().of(term)
    assert made is not None
    assert made.type == term.type
    few = [images, pick(variable("r", (1, ROWS))).shape[1]]
    assert rows_of(made) == {n: [images, ROWS] if n[0] in "kv" else few for n in rows_of(term)}
    if isinstance(images, int):
        assert_equal(term, made)


def test_a_product_of_which_one_channel_is_read_has_one_column() -> None:
    term = Slice(2, 0, 1)(Relu()(linear(variable("x", (2, ROWS, WIDTH)), "p", 2)))
    made = Picking().of(term)
    assert made is not None
    (product,) = [t for t in running(made) if isinstance(t.operator, MatMul)]
    assert product.shape == (2, ROWS, 1)
    assert_equal(term, made)


def test_nothing_is_picked_before_what_reads_it_all() -> None:
    x = variable("x", (2, ROWS, WIDTH))
    pick = Slice(1, 0, 1)
    for term in (
        pick(x),
        pick(Softmax(1)(x)),
        pick(weight("w", 2, ROWS)),
        pick(Reshape((2, WIDTH, ROWS))(x)),
        Relu()(x),
        pick(Mul()(weight("w", 2, ROWS), weight("v", 2, ROWS))),
    ):
        assert Picking().of(term) is None


def test_what_something_else_of_it_reads_in_full_is_computed_once() -> None:
    x = variable("x", (1, ROWS, ROWS))
    shared = Relu()(x)
    term = Slice(1, 0, 1)(Add()(MatMul()(shared, shared), shared))
    made = Picking().of(term)
    assert made is not None
    assert [t.shape for t in running(made) if isinstance(t.operator, Relu)] == [(1, ROWS, ROWS)]
    assert_equal(term, made)


def test_a_chain_of_a_thousand_is_picked_of() -> None:
    x = variable("x", (4, 3))
    joined = x
    for _ in range(1000):
        joined = Concat(1)(joined, x)
    made = Picking().of(Slice(0, 0, 1)(joined))
    assert made is not None
    assert made.shape == (1, 3003)


def simplified(*outputs: Term) -> list[Graph]:
    graph, cost = Graph(tuple(v for v in variables(*outputs) if not v.constant), outputs), AnalyticCost()
    space = Space(graph, Matching([Less(Picking)]), cost)
    return [f.graph for f in space.simplified(Found(graph, cost.cost(graph), ()))]


def test_it_is_done_at_once_where_that_leaves_less_to_compute() -> None:
    x = variable("x", (1, 512, 512))
    (found,) = simplified(Slice(1, 0, 1)(Relu()(linear(x, "a", 512))))
    assert rows_of(found.outputs[0]) == {"a_w": [1, 1]}
    y = linear(x, "a", 512)
    assert not simplified(Slice(2, 0, 256)(y), Slice(2, 256, 512)(y)), "all of it is read"


def test_it_is_one_of_the_rewrites_that_definitions_are() -> None:
    assert Less(Picking) in rewrites_of([], ["gelu"])
    assert Less(Picking) not in rewrites_of([], [])
