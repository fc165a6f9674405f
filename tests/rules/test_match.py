"""Matching and building: sizes are bound once, either order of what commutes, conditions decided, values kept."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from superopt.arithmetic.exact import EXACT
from superopt.dim import floor_div, symbol
from superopt.evaluate import evaluate_all, sample
from superopt.operators.conv import Conv
from superopt.operators.declared import Declared
from superopt.operators.facts import supposing
from superopt.operators.instances import small_instances
from superopt.operators.layout import Concat, Transpose
from superopt.operators.matmul import MatMul
from superopt.operators.picks import Slice
from superopt.operators.pointwise import Add, Div, Mul, Relu
from superopt.rules.format import load_rules
from superopt.rules.match import Bindings, build, commuted, instance_of, matches, rewrites
from superopt.rules.rule import Rule
from superopt.shipped import shipped_rules
from superopt.term import Fact, Term, subterms, variable, variables
from superopt.verify.witness import differing
from tests.rules.texts import rule_of

CASES = {r.name: r for r in load_rules(Path(__file__).parents[1] / "verify" / "cases" / "proved.rules").rules}
SHIPPED = random.Random(0).sample([rule for path in shipped_rules() for rule in load_rules(path).rules], 600)
N = symbol("N")
A, B, C, D = (variable(n, (4, 4)) for n in "abcd")


@pytest.mark.parametrize("first", range(8))
def test_a_shipped_rule_gives_equal_values_at_its_own_left_hand_side(first: int) -> None:
    """What matching and building make of an example is executed, not what the rule says of itself."""
    some = SHIPPED[first::8]
    assert some
    for rule in some:
        seen = 0
        for example in small_instances(rule.source, rule.conditions, count=3, seed=first):
            given = {v.label: v for v in variables(*example)}
            facts = [Fact(f.kind, given[f.of.label]) for f in rule.facts]
            with supposing(facts):
                found = list(matches(rule, example))
            assert found, f"{rule.name} does not match its own left-hand side {example}"
            for bindings in found:
                built = build(rule, bindings)
                if built is not None:
                    _demand_equal(rule, example, built, facts)
                    seen += 1
        assert seen, f"{rule.name} was built nowhere"


def _demand_equal(rule: Rule, before: tuple[Term, ...], after: tuple[Term, ...], facts: Sequence[Fact] = ()) -> None:
    assert [t.type for t in before] == [t.type for t in after], rule.name
    if facts:  # which the elements of a field do not tell
        assert differing(before, after, facts, 0) is None, f"{rule.name}: {before} -> {after}"
        return
    agreed = 0
    for ring in EXACT:
        values = sample((*before, *after), ring, 0)
        pairs = zip(evaluate_all(before, ring, values), evaluate_all(after, ring, values), strict=True)
        same = all(bool((a == b).all()) for a, b in pairs)
        needs = {n for t in subterms(*before, *after) if isinstance(t.operator, Declared) for n in t.operator.needs}
        assert same or not needs <= ring.has, f"{rule.name}: {before} -> {after} in {ring.name}"
        agreed += same
    assert agreed, f"{rule.name}: {before} -> {after}"


def test_a_variable_binds_one_term_only() -> None:
    rule = rule_of("(rule r (given (?x n m)) (from (add ?x ?x)) (to (relu ?x)))")
    assert list(rewrites(rule, Add()(A, A))) == [Relu()(A)]
    assert not list(rewrites(rule, Add()(A, B)))


def test_a_size_binds_one_size_only() -> None:
    rule = rule_of("(rule r (given (?x n n)) (from (relu ?x)) (to ?x))")
    assert list(rewrites(rule, Relu()(A))) == [A]
    assert not list(rewrites(rule, Relu()(variable("x", (4, 5)))))
    assert not list(rewrites(rule, Relu()(variable("x", (4, N)))))


def test_a_number_in_a_pattern_matches_that_number_only() -> None:
    rule = rule_of("(rule r (given (?x n c h w) (?k o c 1 1)) (from (conv ?x ?k)) (to (conv ?x ?k)))")
    x = variable("x", (1, 3, 8, 8))
    assert list(matches(rule, (Conv()(x, variable("k", (5, 3, 1, 1))),)))
    assert not list(matches(rule, (Conv()(x, variable("k", (5, 3, 1, 2))),)))
    assert not list(matches(rule, (Conv((2, 2))(x, variable("k", (5, 3, 1, 1))),)))


def test_a_size_that_is_an_expression_is_computed_and_compared() -> None:
    rule = rule_of("(rule r (given (?x n m)) (from (slice 1 0 (div m 2) ?x)) (to (slice 1 0 (div m 2) (relu ?x))))")
    assert list(matches(rule, (Slice(1, 0, 2)(A),)))
    assert not list(matches(rule, (Slice(1, 0, 3)(A),)))
    x = variable("x", (3, 2 * N))
    assert floor_div(2 * N, 2) is N
    assert not list(matches(rule, (Slice(1, 0, 1)(variable("y", (3, 4))),)))
    assert [b.sizes["m"] for b in matches(rule, (Relu()(x),))] == []


@pytest.mark.parametrize("cls", [Add, Mul])
def test_what_commutes_matches_either_way_round(cls: type[Declared]) -> None:
    rule = rule_of(f"(rule r (given (?x n m) (?y n m)) (from ({cls.name} (relu ?x) ?y)) (to ?y))")
    assert list(rewrites(rule, cls()(Relu()(A), B))) == [B]
    assert list(rewrites(rule, cls()(B, Relu()(A)))) == [B]
    assert set(rewrites(rule, cls()(Relu()(A), Relu()(B)))) == {Relu()(A), Relu()(B)}


def test_what_does_not_commute_matches_in_order_only() -> None:
    rule = rule_of("(rule r (given (?x n m) (?y n m)) (from (div (relu ?x) ?y)) (to ?y))")
    assert list(rewrites(rule, Div()(Relu()(A), B))) == [B]
    assert not list(rewrites(rule, Div()(B, Relu()(A))))


def test_commuting_is_tried_at_every_depth() -> None:
    rule = rule_of("(rule r (given (?x n m) (?y n m) (?z n m)) (from (add (mul ?x (relu ?y)) (relu ?z))) (to ?x))")
    for inner in (Mul()(A, Relu()(B)), Mul()(Relu()(B), A)):
        for whole in (Add()(inner, Relu()(C)), Add()(Relu()(C), inner)):
            assert list(rewrites(rule, whole)) == [A]


def test_a_rule_of_two_outputs_binds_what_they_share() -> None:
    rule = CASES["matmul-share-left"]
    x, y, z = variable("x", (2, 4)), variable("y", (4, 5)), variable("z", (4, 7))
    (bindings,) = matches(rule, (MatMul()(x, y), MatMul()(x, z)))
    wide = MatMul()(x, Concat(1)(y, z))
    assert build(rule, bindings) == (Slice(1, 0, 5)(wide), Slice(1, 5, 12)(wide))
    assert not list(matches(rule, (MatMul()(x, y), MatMul()(variable("u", (2, 4)), z))))


def test_a_rule_of_two_outputs_takes_symbolic_sizes() -> None:
    rule = CASES["matmul-share-left"]
    x, y, z = variable("x", (N, 4)), variable("y", (4, 5)), variable("z", (4, 7))
    (bindings,) = matches(rule, (MatMul()(x, y), MatMul()(x, z)))
    built = build(rule, bindings)
    assert built is not None
    assert [t.shape for t in built] == [(N, 5), (N, 7)]


def test_a_condition_applies_only_where_it_is_decided_and_true() -> None:
    rule = CASES["add-of-concats-regrouped-if-equal"]

    def whole(n: object, s: object) -> Term:
        wide = 12
        parts = [variable(f"p{i}", (4, w)) for i, w in enumerate((n, wide - n, s, wide - s))]  # type: ignore[operator]
        return Add()(Concat(1)(*parts[:2]), Concat(1)(*parts[2:]))

    assert len(list(rewrites(rule, whole(5, 5)))) >= 1
    assert not list(rewrites(rule, whole(5, 7)))
    assert len(list(rewrites(rule, whole(N, N)))) >= 1
    assert not list(rewrites(rule, whole(N, symbol("M"))))


def test_a_target_that_does_not_fit_is_not_built() -> None:
    rule = rule_of("(rule r (given (?x n m)) (from (relu ?x)) (to (slice 1 0 2 (relu ?x))))")
    bindings = Bindings({variable("x", (symbol("n"), symbol("m"))): variable("y", (4, 1))}, {"n": 4, "m": 1})
    assert build(rule, bindings) is None


def test_a_rewriting_that_changes_nothing_is_none() -> None:
    rule = rule_of("(rule r (given (?x n m) (?y n m)) (from (add ?x ?y)) (to (add ?y ?x)))")
    assert list(rewrites(rule, Add()(A, B))) == [Add()(B, A)]
    assert not list(rewrites(rule, Add()(A, A)))


def test_matching_is_in_one_order() -> None:
    rule = CASES["matmul-associates"]
    chain = MatMul()(MatMul()(MatMul()(A, B), C), D)
    assert [list(rewrites(rule, t)) for t in (chain, chain)] == [[MatMul()(MatMul()(A, B), MatMul()(C, D))]] * 2


def test_a_term_of_another_rank_or_structure_does_not_match() -> None:
    rule = rule_of("(rule r (given (?x n m)) (from (transpose (1 0) ?x)) (to ?x))")
    assert not list(matches(rule, (Transpose((0, 1))(A),)))
    assert not list(matches(rule, (Transpose((1, 0, 2))(variable("x", (2, 2, 2))),)))


@pytest.mark.parametrize(
    ("special", "general", "expected"),
    [
        ("(from (add (relu ?x) ?y)) (to (add ?y (relu ?x)))", "(from (add ?x ?y)) (to (add ?y ?x))", True),
        ("(from (add ?x ?x)) (to (mul ?x ?x))", "(from (add ?x ?y)) (to (mul ?y ?x))", True),
        ("(from (add ?x ?y)) (to (mul ?y ?x))", "(from (add ?x ?x)) (to (mul ?x ?x))", False),
        ("(from (relu ?x)) (to ?x)", "(from (sqrt ?x)) (to ?x)", False),
        ("(from (add ?x ?y)) (to ?x)", "(from (add ?x ?y)) (to ?y)", True),
        ("(from (div ?x ?y)) (to ?x)", "(from (div ?x ?y)) (to ?y)", False),
    ],
)
def test_a_rule_is_an_instance_where_something_put_in_makes_it(special: str, general: str, expected: bool) -> None:
    given = "(given (?x n m) (?y n m))"
    one, other = (rule_of(f"(rule r {given} {text})") for text in (special, general))
    assert instance_of(one, other) is expected


def test_terms_equal_but_for_what_commutes_are_one_when_commuted() -> None:
    one, other = Add()(Mul()(A, B), Relu()(C)), Add()(Relu()(C), Mul()(B, A))
    assert commuted(one) is commuted(other)
    assert commuted(MatMul()(A, B)) is not commuted(MatMul()(B, A))
    values = sample((one,), EXACT[0], 0)
    assert np.array_equal(*evaluate_all((one, commuted(one)), EXACT[0], values))
