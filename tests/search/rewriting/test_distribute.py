"""Products of sums with weights are multiplied out where the factor then saves something, and nowhere else."""

from __future__ import annotations

from functools import cache

import pytest

from superopt.arithmetic.field import FIELD
from superopt.cost.analytic import AnalyticCost
from superopt.evaluate import evaluate, sample
from superopt.operators.activations import HardSwish
from superopt.operators.clip import Clip
from superopt.operators.constant import filled
from superopt.operators.conv import Conv
from superopt.operators.layout import Expand
from superopt.operators.pointwise import Add, Div, Mul
from superopt.rules.format import load_rules, parse_file
from superopt.search.rewriting.distribute import distributed, distributing
from superopt.search.rewriting.matching import Matching
from superopt.search.rewriting.rewrites import ByRule, Fold, Rewrite, rewrites_of
from superopt.search.strategies.found import Found
from superopt.search.strategies.space import Space
from superopt.shipped import shipped_rules
from superopt.term import Graph, Term, running, variable

GIVEN = "(given (?x *) (?y *) (?z *))"
NEAR_MISSES = {
    "one of both": f"(rule r {GIVEN} (from (mul (add ?x ?y) ?z)) (to (add (mul ?x ?z) (mul ?x ?z))))",
    "the sum alone": "(rule r (given (?x *) (?z *)) (from (mul (add ?x ?z) ?z)) (to (add (mul ?x ?z) (mul ?z ?z))))",
    "one rank": "(rule r (given (?x n) (?y n) (?z n)) (from (mul (add ?x ?y) ?z)) (to (add (mul ?x ?z) (mul ?y ?z))))",
    "a quotient by a sum": f"(rule r {GIVEN} (from (div ?z (add ?x ?y))) (to (add (div ?z ?x) (div ?z ?y))))",
}


@cache
def shipped() -> tuple[Rewrite, ...]:
    rules = [r for path in shipped_rules() for r in load_rules(path).rules]
    return tuple(rewrites_of(rules, ["hard_swish", "hard_sigmoid"]))


def test_shipped_rules_say_that_sums_may_be_multiplied_out() -> None:
    assert set(distributing(shipped())) == {"mul", "div"}


@pytest.mark.parametrize("text", NEAR_MISSES.values(), ids=NEAR_MISSES)
def test_what_says_less_than_that_does_not_count(text: str) -> None:
    assert distributing([ByRule(r) for r in parse_file(text).rules]) == {}


@pytest.mark.parametrize("op", [Mul(), Div()], ids=["mul", "div"])
def test_multiplying_out_changes_no_value(op: Mul | Div) -> None:
    x = variable("x", (2, 3))
    w, z = (variable(n, (2, 3), constant=True) for n in "wz")
    for term in (op(Add()(x, w), z), op(Add()(w, x), z)):
        ((rule, made, saves),) = distributed(term, lambda part: 2.0, distributing(shipped()))
        assert (rule.heads, saves, made.operator) == ((op.name,), 2.0, Add())
        values = sample((term,), FIELD, 0)
        assert (evaluate(made, FIELD, values) == evaluate(term, FIELD, values)).all()
    assert not list(distributed(op(Add()(x, w), z), lambda part: 0.0, distributing(shipped())))
    for other in (op(Add()(x, x), z), op(Add()(x, w), x), Div()(z, Add()(x, w)), op(x, z)):
        assert not list(distributed(other, lambda part: 2.0, distributing(shipped())))


def simplified(term: Term) -> list[str]:
    """The operators that a graph comes to by what leaves less to compute alone."""
    graph, matching = Graph((variable("x", (1, 8, 6, 6), "float32"),), (term,)), Matching(shipped())
    cost = AnalyticCost()
    (found,) = Space(graph, matching, cost).simplified(Found(graph, cost.cost(graph), ()))
    return [t.operator.name for t in running(*found.graph.outputs) if t.operator.name != "expand"]


def scaled_convolution() -> Term:
    """A convolution with a bias, scaled and shifted by numbers, as PP-OCR's networks have them before activations."""
    x = variable("x", (1, 8, 6, 6), "float32")
    k, b = (variable(n, s, "float32", constant=True) for n, s in (("k", (8, 8, 1, 1)), ("b", (8,))))
    conv = Conv()(x, k)
    biased = Add()(conv, Expand((1,), conv.shape)(b))
    s, t = (variable(n, (), "float32", constant=True) for n in "st")
    return Add()(Mul()(biased, Expand((), conv.shape)(s)), Expand((), conv.shape)(t))


def test_a_convolution_takes_in_the_factor_behind_its_bias() -> None:
    assert simplified(scaled_convolution()) == ["conv", "add"]


def test_what_is_added_within_an_activation_stays_beside_what_that_gates() -> None:
    """`y · clip(y + 3, 0, 6) / 6` reads y twice: were 3 added to the weights of one, nothing would be saved."""
    y = scaled_convolution()
    six = filled(6.0, y.shape)
    gate = Clip()(Add()(y, filled(3.0, y.shape)), filled(0.0, ()), filled(6.0, ()))
    assert simplified(Div()(Mul()(y, gate), six)) == ["conv", "add", HardSwish.name]
    assert any(isinstance(r, Fold) for r in shipped())
