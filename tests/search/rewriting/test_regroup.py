"""Sums and products of several terms: any two meet that save something so, and nothing else changes."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from superopt.arithmetic.field import FIELD
from superopt.cost.analytic import AnalyticCost
from superopt.evaluate import evaluate, sample
from superopt.operators.conv import Conv
from superopt.operators.declared import Declared
from superopt.operators.differences import Sub
from superopt.operators.layout import Expand
from superopt.operators.normalize import BatchNorm
from superopt.operators.pointwise import Add, Mul, Relu
from superopt.rules.format import load_rules, parse_file
from superopt.search.rewriting.matching import Matching
from superopt.search.rewriting.regroup import MOST, _shared, parts_of, regrouped, regrouping
from superopt.search.rewriting.rewrites import ByRule, Rewrite, rewrites_of
from superopt.search.strategies.backtrack import backtrack
from superopt.search.strategies.found import Limits
from superopt.shipped import shipped_rules
from superopt.term import Graph, Term, running, variable

SUM = "(add ?x (add ?y ?z))"
NEAR_MISSES = {
    "two of one": "(rule r (given (?x *) (?y *)) (from (add ?x (add ?x ?y))) (to (add (add ?x ?x) ?y)))",
    "nothing regrouped": f"(rule r (given (?x *) (?y *) (?z *)) (from {SUM}) (to (add (add ?y ?z) ?x)))",
    "in order": "(rule r (given (?x *) (?y *) (?z *)) (from (sub (sub ?x ?y) ?z)) (to (sub ?x (sub ?y ?z))))",
    "another operator": f"(rule r (given (?x *) (?y *) (?z *)) (from {SUM}) (to (mul (mul ?x ?y) ?z)))",
    "one rank": f"(rule r (given (?x n) (?y n) (?z n)) (from {SUM}) (to (add (add ?x ?y) ?z)))",
    "a condition": f"(rule r (given (?x n c) (?y n c) (?z n c)) (if (= n c)) (from {SUM}) (to (add (add ?x ?y) ?z)))",
}
REGROUP = "(rule r (given (?x *) (?y *) (?z *)) (from (add ?x (add ?y ?z))) (to (add (add ?y ?x) ?z)))"


@cache
def shipped() -> tuple[Rewrite, ...]:
    return tuple(rewrites_of([r for path in shipped_rules() for r in load_rules(path).rules], ["batchnorm"]))


def by(text: str) -> list[Rewrite]:
    return [ByRule(r) for r in parse_file(text).rules]


def test_shipped_rules_say_that_sums_and_products_may_be_grouped_in_any_way() -> None:
    assert {"add", "mul", "sub"} <= regrouping(shipped()).keys()


@pytest.mark.parametrize("text", NEAR_MISSES.values(), ids=NEAR_MISSES)
def test_what_says_less_than_that_does_not_count(text: str) -> None:
    assert regrouping(by(text)) == {}


@st.composite
def grouped(draw: st.DrawFn) -> Term:
    """Sums, some with differences, or products, of three to eight variables, grouped in some way."""
    ops: tuple[Declared, ...] = draw(st.sampled_from(((Add(),), (Mul(),), (Add(), Sub()))))
    variables = [variable(f"x{i}", (2,)) for i in range(4)]
    terms = draw(st.lists(st.sampled_from(variables), min_size=3, max_size=MOST))
    while len(terms) > 1:
        i = draw(st.integers(0, len(terms) - 2))
        terms[i : i + 2] = [draw(st.sampled_from(ops))(terms[i], terms[i + 1])]
    return terms[0]


ZERO = Sub()(variable("x0", (2,)), variable("x0", (2,)))


@given(grouped())
@example(Add()(ZERO, Add()(ZERO, variable("x0", (2,)))))  # what is shared is not taken apart: a sum without differences
@settings(derandomize=True, deadline=None)
def test_regrouping_changes_no_value_and_brings_two_together(term: Term) -> None:
    values = sample((term,), FIELD, 0)
    for rule, made, saves in regrouped(term, lambda pair: 1.0, regrouping(shipped())):
        differences = any(away for _, away in parts_of(term, whole=_shared(term)))
        assert rule.heads == ("sub" if differences else term.operator.name,)
        assert saves == 1.0
        assert sorted(map(repr, parts_of(made))) == sorted(map(repr, parts_of(term)))
        assert (evaluate(made, FIELD, values) == evaluate(term, FIELD, values)).all()


def test_each_pair_of_three_terms_is_brought_together() -> None:
    x, y, z = (variable(n, (2,)) for n in "xyz")
    assert len(list(regrouped(Add()(x, Add()(y, z)), lambda pair: 1.0, regrouping(shipped())))) >= 2


def test_nothing_is_regrouped_where_no_rule_says_so() -> None:
    x, y, z = (variable(n, (2,)) for n in "xyz")
    assert list(regrouped(Add()(x, Add()(y, z)), lambda pair: 1.0, regrouping(by(NEAR_MISSES["two of one"])))) == []


def test_what_is_together_already_stays_as_it_is() -> None:
    x, y, z = (variable(n, (2,)) for n in "xyz")

    def of_both(pair: Term) -> float:
        return float(set(pair.inputs) == {y, z})

    assert list(regrouped(Add()(x, Add()(z, y)), of_both, regrouping(by(REGROUP)))) == []
    assert len(list(regrouped(Add()(Add()(x, z), y), of_both, regrouping(by(REGROUP))))) == 1


@pytest.mark.parametrize("order", range(3))
def test_three_branches_with_a_bias_each_become_one_convolution(order: int) -> None:
    """A block of RepVGG (Ding et al. 2021), as exporters write it: normalizations folded where that is easy."""
    x = variable("x", (1, 8, 6, 6), "float32")

    def constant(name: str, *shape: int) -> Term:
        return variable(name, shape, "float32", constant=True)

    def biased(size: int) -> Term:
        kernel, bias = constant(f"k{size}", 8, 8, size, size), constant(f"b{size}", 8)
        conv = Conv((1, 1), (size // 2,) * 4, (1, 1), 1)(x, kernel)
        return Add()(conv, Expand((1,), conv.shape)(bias))

    norm = BatchNorm()(x, *(constant(n, 8) for n in ("scale", "bias", "mean", "variance")))
    branches = [biased(1), biased(3), norm]
    a, b, c = branches[order:] + branches[:order]
    outcome = backtrack(
        Graph((x,), (Relu()(Add()(Add()(a, b), c)),)), Matching(shipped()), AnalyticCost(), Limits(alpha=1.15)
    )
    names = [t.operator.name for t in running(*outcome.best[0].graph.outputs)]
    assert sorted(n for n in names if n != "expand") == ["add", "conv", "relu"], names
    assert outcome.seen <= 16, "it went through orders of sums"


def test_a_sum_that_others_take_too_is_not_taken_apart() -> None:
    """A block of RepViT (Wang et al. 2024): its input, which is a sum itself, is added to two convolutions of it."""
    a, b = (variable(n, (1, 8, 6, 6), "float32") for n in "ab")
    x = Add()(a, b)

    def convolved(size: int) -> Term:
        kernel = variable(f"k{size}", (8, 1, size, size), "float32", constant=True)
        return Conv((1, 1), (size // 2,) * 4, (1, 1), 8)(x, kernel)

    first, second = convolved(3), convolved(1)
    term = Add()(Add()(first, second), x)
    pairs = set[frozenset[Term]]()

    def looked_at(pair: Term) -> float:
        pairs.add(frozenset(pair.inputs))
        return 1.0

    made = list(regrouped(term, looked_at, regrouping(shipped())))
    assert pairs == {frozenset((first, x)), frozenset((second, x))}
    assert len(made) == 2
    outcome = backtrack(Graph((a, b), (term,)), Matching(shipped()), AnalyticCost(), Limits(alpha=1.15))
    names = [t.operator.name for t in running(*outcome.best[0].graph.outputs)]
    assert sorted(names) == ["add", "conv"], names


@pytest.mark.parametrize("group", [1, 8])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize(("large", "small"), [(5, 3), (7, 3), (13, 5)])
def test_a_kernel_beside_a_larger_one_becomes_one_with_it(large: int, small: int, stride: int, group: int) -> None:
    """As large kernels are trained (Ding et al. 2022), for any sizes, strides and groups."""
    x = variable("x", (1, 8, 15, 15), "float32")

    def branch(size: int) -> Term:
        kernel = variable(f"k{size}", (8, 8 // group, size, size), "float32", constant=True)
        norm = (variable(f"{n}{size}", (8,), "float32", constant=True) for n in ("scale", "bias", "mean", "variance"))
        return BatchNorm()(Conv((stride, stride), (size // 2,) * 4, (1, 1), group)(x, kernel), *norm)

    given = Graph((x,), (Relu()(Add()(branch(large), branch(small))),))
    outcome = backtrack(given, Matching(shipped()), AnalyticCost(), Limits(alpha=1.15))
    names = [t.operator.name for t in running(*outcome.best[0].graph.outputs)]
    assert sorted(n for n in names if n != "expand") == ["add", "conv", "relu"], names
