"""Terms that are computed alike become slices of one value, which is exactly theirs; others do not."""

from __future__ import annotations

import pytest

from superopt.arithmetic.field import FIELD
from superopt.demands import assuming
from superopt.dim import Dim, symbol
from superopt.evaluate import evaluate_all, sample
from superopt.operators.conv import Conv
from superopt.operators.differences import Neg
from superopt.operators.layout import Concat, Expand, Reshape, Transpose
from superopt.operators.matmul import MatMul
from superopt.operators.picks import Slice
from superopt.operators.pointwise import Add, Mul, Relu
from superopt.rules.rule import Rule
from superopt.search.rewriting.application import Application
from superopt.search.rewriting.matching import Matching
from superopt.search.rewriting.rewrites import Abreast
from superopt.search.strategies.space import applied
from superopt.term import Graph, Term, replace_all, variable, variables
from superopt.verify.check import attempt
from superopt.verify.prove import Proved

ROWS, HEADS, WIDTH = 5, 3, 4
X = variable("x", (1, ROWS, 8), "float32")
COS, SIN = (variable(n, (ROWS, WIDTH), "float32") for n in ("cos", "sin"))


def weight(label: str, *shape: Dim) -> Term:
    return variable(label, shape, "float32", constant=True)


def product(label: str, x: Term = X, heads: int = HEADS) -> Term:
    stack = Expand((1, 2), (1, 8, heads * WIDTH))
    return MatMul()(x, stack(weight(label, 8, heads * WIDTH)))


def by_heads(x: Term, heads: int = HEADS) -> Term:
    return Transpose((0, 2, 1, 3))(Reshape((1, ROWS, heads, WIDTH))(x))


def turned(x: Term) -> Term:
    """Rotary positions, as exporters write them (Su et al. 2021, arXiv 2104.09864)."""
    low, high = Slice(3, 0, WIDTH // 2)(x), Slice(3, WIDTH // 2, WIDTH)(x)
    cos, sin = (Expand((2, 3), x.shape)(angle) for angle in (COS, SIN))
    return Add()(Mul()(x, cos), Mul()(Concat(3)(Neg()(high), low), sin))


def graph(*outputs: Term) -> Graph:
    return Graph(tuple(variables(*outputs)), outputs)


def applications(given: Graph) -> list[Application]:
    return list(Matching([Abreast()]).applications(given))


def names(given: Graph) -> list[str]:
    return sorted(t.operator.name for t in given.runs if not isinstance(t.operator, Expand | Reshape))


def assert_equal(before: Graph, after: Graph) -> None:
    values = sample(before.outputs, FIELD, 0)
    both = zip(*(evaluate_all(g.outputs, FIELD, values) for g in (before, after)), strict=True)
    assert all((a == b).all() for a, b in both)


def attention_begins(heads: int = HEADS) -> Graph:
    return graph(turned(by_heads(product("q"))), turned(by_heads(product("k", heads=heads), heads)))


@pytest.mark.parametrize("heads", [HEADS, 1], ids=["as many", "shared"])
def test_queries_and_keys_are_turned_together(heads: int) -> None:
    start = attention_begins(heads)
    found = [applied(start, a.new) for a in applications(start)]
    assert found
    for after in found:
        assert [o.type for o in after.outputs] == [o.type for o in start.outputs]
        assert_equal(start, after)
    least = min(found, key=lambda g: len(g.runs))
    alone = names(graph(start.outputs[0]))
    assert names(least) == sorted([*alone, "slice", "slice"]), "what one of them takes, and two slices"


def test_values_are_joined_with_what_was_joined_before() -> None:
    start = graph(*(by_heads(Relu()(product(n))) for n in "qkv"))
    two = applied(start, applications(start)[0].new)
    three = [applied(two, a.new) for a in applications(two)]
    assert any(names(g).count("matmul") == 1 for g in three)
    assert all(names(g).count("matmul") <= names(two).count("matmul") for g in three)
    for after in three:
        assert_equal(start, after)


def test_parts_of_one_value_are_computed_of_the_whole() -> None:
    whole = variable("y", (2, 9), "float32")
    parts = [Neg()(Relu()(Slice(1, a, b)(whole))) for a, b in ((0, 4), (4, 7))]
    start = graph(*parts)
    (after,) = [applied(start, a.new) for a in applications(start)]
    assert names(after) == ["neg", "relu", "slice", "slice", "slice"], "seven of nine columns are used"
    assert_equal(start, after)


def test_inputs_that_may_be_exchanged_are() -> None:
    a, b = (Relu()(MatMul()(variable("r", (5, 8), "float32"), weight(n, 8, 6))) for n in "ab")
    shift = variable("s", (5,), "float32")
    spread = Expand((0,), (5, 6))(shift)
    start = graph(Add()(a, spread), Add()(spread, b))
    assert any(names(applied(start, x.new)).count("matmul") == 1 for x in applications(start))


APART = {
    "another input": graph(
        by_heads(Relu()(product("q"))), by_heads(Relu()(product("k", variable("z", X.shape, "float32"))))
    ),
    "another operator": graph(by_heads(Relu()(product("q"))), by_heads(Neg()(product("k")))),
    "one of the other": graph(by_heads(Relu()(product("q"))), Relu()(by_heads(Relu()(product("q"))))),
    "two products alone": graph(product("q"), product("k")),
    "groups of channels": graph(
        *(
            Neg()(
                Relu()(Conv((1, 1), (0,) * 4, (1, 1), 2)(variable("i", (1, 4, 6, 6), "float32"), weight(n, 4, 2, 1, 1)))
            )
            for n in "ab"
        )
    ),
}


@pytest.mark.parametrize("given", APART.values(), ids=APART)
def test_what_is_not_computed_alike_stays_apart(given: Graph) -> None:
    assert applications(given) == []


def test_what_is_found_at_sizes_that_are_symbols_is_proved_for_all() -> None:
    k, n, o = map(symbol, "kno")
    x = variable("x", (symbol("m"), k))
    start = graph(*(Neg()(Relu()(MatMul()(x, variable(w, (k, d), constant=True)))) for w, d in (("a", n), ("b", o))))
    (found,) = applications(start)
    assert names(applied(start, found.new)) == ["matmul", "neg", "relu", "slice", "slice"]
    given = {v: variable(v.label, v.shape) for v in start.inputs}  # rules have no constants
    with assuming():
        roots, targets = (replace_all(terms, given) for terms in (found.roots, found.template.targets))
    assert isinstance(attempt(Rule("together", roots, targets)), Proved)


def test_of_terms_above_each_other_the_last_are_joined() -> None:
    (application,) = applications(attention_begins())
    assert [root.operator for root in application.roots] == [Add(), Add()]


def test_what_is_reshaped_from_other_ranks_is_left_apart() -> None:
    stacks, images = variable("x", (2, 2, 6), "float32"), variable("y", (1, 2, 2, 8), "float32")
    rows = Reshape((4, 6))(Relu()(stacks)), Reshape((4, 8))(Relu()(images))
    for one, other in (rows, rows[::-1]):
        assert applications(graph(Neg()(one), Neg()(other))) == []


def test_sizes_that_symbols_leave_open_are_not_taken_as_equal() -> None:
    n = symbol("n")
    x, y = variable("x", (2 * n, 8), "float32"), variable("y", (4, 2 * n), "float32")
    with assuming():
        neighbours = Slice(0, 0, n)(x), Slice(0, n, 2 * n)(x)
        rows = Reshape((n, 8))(Relu()(y)), Reshape((4, 2 * n))(Relu()(Relu()(y)))
    counts = [len(applications(graph(Neg()(one), Neg()(other)))) for one, other in (neighbours, rows)]
    assert counts == [1, 0]
