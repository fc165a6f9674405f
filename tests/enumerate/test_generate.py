"""Enumeration: the same rules for any number of workers, those that matter among them, none an instance of another."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from superopt.arithmetic import EXACT
from superopt.enumerate.family import CORE, core_family
from superopt.enumerate.generalize import LADDER, abstracted, canonical, generalized
from superopt.enumerate.generate import Generated, distinct, generate, prune_instances
from superopt.enumerate.grow import fingerprint, grow
from superopt.errors import UsageError
from superopt.evaluate import evaluate, sample
from superopt.operators import CATALOGUE
from superopt.operators.layout import Concat, Expand, Slice
from superopt.operators.linear import Conv, MatMul
from superopt.operators.pointwise import Add, Mul, Relu
from superopt.rules.format import load_rules, parse_file, print_rule
from superopt.rules.match import instance_of, rewrites
from superopt.rules.rule import Rule
from superopt.shipped import shipped_rules
from superopt.term import Term, subterms, variable, variables
from superopt.verify.check import execute, verify
from superopt.verify.prove import Proved

SMALL = "add,mul,matmul,relu"
LAYOUT = "concat,slice,relu"


@cache
def found(operators: str, workers: int = 1, seed: int = 0) -> Generated:
    return generate(core_family(operators), max_ops=2, seed=seed, workers=workers)


def text(rules: list[Rule]) -> str:
    return "".join(map(print_rule, rules))


def applies(rules: list[Rule], before: Term, after: Term) -> bool:
    return any(after in set(rewrites(r, before)) for r in rules if len(r.source) == 1)


def test_two_workers_find_the_same_rules_as_one() -> None:
    one, two = found(SMALL), found(SMALL, workers=2)
    assert one.rules
    assert text(two.rules) == text(one.rules)
    assert two.counts == one.counts
    assert two.unknown == one.unknown


def test_a_second_run_finds_the_same_rules() -> None:
    assert text(generate(core_family(SMALL), max_ops=2).rules) == text(found(SMALL).rules)


def test_another_seed_finds_the_same_rules() -> None:
    """The values that terms are compared on are random; what is proved is not."""
    assert text(found(LAYOUT, seed=1).rules) == text(found(LAYOUT).rules)


X, Y, Z = variable("x", (3, 7)), variable("y", (7, 8), constant=True), variable("z", (8, 9), constant=True)
I = variable("i", (2, 4, 5, 6))
U, V = variable("u", (4,), constant=True), variable("v", (4,), constant=True)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (MatMul()(MatMul()(X, Y), Z), MatMul()(X, MatMul()(Y, Z))),
        (
            Mul()(Add()(I, Expand((1,), I.shape)(U)), Expand((1,), I.shape)(V)),
            Add()(Mul()(I, Expand((1,), I.shape)(V)), Expand((1,), I.shape)(Mul()(U, V))),
        ),
        (
            Add()(Add()(I, Expand((1,), I.shape)(U)), Expand((1,), I.shape)(V)),
            Add()(I, Expand((1,), I.shape)(Add()(U, V))),
        ),
        (
            Mul()(Mul()(I, Expand((1,), I.shape)(U)), Expand((1,), I.shape)(V)),
            Mul()(I, Expand((1,), I.shape)(Mul()(U, V))),
        ),
        (Relu()(Relu()(I)), Relu()(I)),
    ],
    ids=["associates", "distributes, weights folded", "folds summands", "folds factors", "relu twice"],
)
def test_the_rules_that_fold_weights_are_found(before: Term, after: Term) -> None:
    assert applies(found(SMALL).rules, before, after)


def test_a_slice_moves_through_relu() -> None:
    a = variable("a", (3, 8))
    assert applies(found(LAYOUT).rules, Slice(1, 0, 5)(Relu()(a)), Relu()(Slice(1, 0, 5)(a)))
    assert applies(found(LAYOUT).rules, Relu()(Slice(1, 0, 5)(a)), Slice(1, 0, 5)(Relu()(a)))


@pytest.mark.parametrize("operators", [SMALL, LAYOUT])
def test_every_rule_found_verifies(operators: str) -> None:
    rules = found(operators).rules
    assert rules
    for rule in rules:
        verdict = verify(rule, seed=9)
        assert isinstance(verdict, Proved), print_rule(rule)
        assert verdict.laws == rule.by


@pytest.mark.parametrize("operators", [SMALL, LAYOUT])
def test_no_rule_found_is_an_instance_of_another(operators: str) -> None:
    rules = found(operators).rules
    assert len(rules) > 3
    wrong = [(a.name, b.name) for a in rules for b in rules if a is not b and instance_of(a, b)]
    assert not wrong


@pytest.mark.parametrize("operators", [SMALL, LAYOUT])
def test_names_are_unique_and_tell_the_operators(operators: str) -> None:
    rules = found(operators).rules
    assert len({r.name for r in rules}) == len(rules)
    assert [r.name for r in rules] == sorted(r.name for r in rules)
    for rule in rules:
        assert set(rule.operators()) - {"expand"} <= set(operators.split(","))
        assert all(name in rule.name for name in rule.operators() if name != "expand")


def test_the_counts_tell_how_the_candidates_became_rules() -> None:
    got = found(SMALL)
    assert got.counts["rules"] == len(got.rules) <= got.counts["proved"]
    assert got.counts["evaluated"] > got.counts["terms"] > got.counts["candidates"] / 10 > 0
    assert got.counts["unknown"] == len(got.unknown)


@pytest.mark.parametrize("operators", ["add,matmil", "gemm", "expand", "add,,nothing"])
def test_an_operator_that_is_unknown_or_not_enumerated_is_refused_by_name(operators: str) -> None:
    bad = operators.split(",")[-1]
    with pytest.raises(UsageError, match=f"operator {bad} is unknown or not enumerated; choose from .*matmul"):
        core_family(operators)


def test_the_core_family_has_operators_that_are_enumerated_and_no_others() -> None:
    names = {c.name for c in core_family().operators}
    assert names <= {n for n, c in CATALOGUE.items() if c.enumerated and not c.free}
    assert names == set(CORE)


def test_grown_terms_have_different_values_and_candidates_equal_ones() -> None:
    family = core_family(SMALL)
    grown = grow(family, max_ops=2, seed=0)
    samples = [(ring, sample(family.variables, ring, 0)) for ring in EXACT]
    for ring, values in samples:
        prints = [fingerprint(evaluate(t, ring, values)) for level in grown.levels for t in level]
        assert len(prints) > 50
        assert len(set(prints)) == len(prints), ring.name
    assert grown.candidates
    for a, b in grown.candidates:
        assert any(np.array_equal(evaluate(a, ring, values), evaluate(b, ring, values)) for ring, values in samples)


@pytest.mark.parametrize("generality", LADDER, ids=str)
def test_a_generalized_rule_has_the_equation_it_came_from_as_an_instance(generality: object) -> None:
    left, right = MatMul()(MatMul()(X, Y), Z), MatMul()(X, MatMul()(Y, Z))
    rule = generalized(left, right, generality)  # type: ignore[arg-type]
    assert rule is not None
    assert right in set(rewrites(rule, left))
    assert not any(isinstance(d, int) for v in rule.given for d in v.shape)


def test_widths_that_need_not_be_equal_are_different_symbols() -> None:
    a, b = variable("a", (3, 7)), variable("b", (3, 7))
    rule = generalized(Relu()(Concat(1)(a, b)), Concat(1)(Relu()(a), Relu()(b)), LADDER[0])
    assert rule is not None
    (m1, n1), (m2, n2) = (v.shape for v in rule.given)
    assert m1 is m2
    assert n1 is not n2


def test_widths_that_must_be_equal_are_one_symbol() -> None:
    a, b, c, d = (variable(n, (3, 7)) for n in "abcd")
    rule = generalized(Add()(Concat(1)(a, b), Concat(1)(c, d)), Concat(1)(Add()(a, c), Add()(b, d)), LADDER[0])
    assert rule is not None
    widths = {v.label: v.shape[1] for v in rule.given}
    assert len(set(map(str, widths.values()))) == 2
    done = execute(rule.source, rule.target, rule.conditions, 6, 0)
    assert isinstance(done, int)
    assert done == 6


def test_renamings_of_one_equation_are_one() -> None:
    family = core_family(SMALL).variables
    x, y = (v for v in family if v.label in "pq")
    assert x.type == y.type
    pairs = [(Add()(x, y), Add()(y, x)), (Add()(y, x), Add()(x, y))]
    assert len(distinct(pairs, family)) == 1


def test_canonical_names_do_not_depend_on_the_names_before() -> None:
    def pair(a: str, b: str) -> tuple[Term, Term]:
        s, t = variable(a, (3, 7)), variable(b, (3, 7))
        left, right = canonical((Add()(s, t), Add()(t, s)))
        return left, right

    assert pair("x", "y") == pair("y", "x") == pair("q", "w")
    assert [v.label for v in variables(pair("q", "w")[0])] == ["x", "y"]


def test_what_both_sides_share_becomes_a_variable() -> None:
    a, b = variable("a", (3, 7)), variable("b", (3, 7))
    shared = Mul()(a, b)
    left, right = abstracted(Relu()(Relu()(shared)), Relu()(shared), lambda s, t: True)
    assert all(t.operator is not Mul() for t in subterms(left, right))
    assert len(variables(left, right)) == 1


def test_the_more_general_of_two_rules_is_kept() -> None:
    given = "(given (?x n m) (?y n m))"
    rules = parse_file(
        f"(rule special {given} (from (add (relu ?x) ?y)) (to (add ?y (relu ?x))))"
        f"(rule general {given} (from (add ?x ?y)) (to (add ?y ?x)))"
    ).rules
    assert [r.name for r in prune_instances(list(rules))] == ["general"]
    assert [r.name for r in prune_instances(list(rules[::-1]))] == ["general"]


def test_no_shipped_rule_is_an_instance_of_another() -> None:
    rules = [rule for path in shipped_rules() for rule in load_rules(path).rules]
    assert rules
    wrong = [(a.name, b.name) for a in rules for b in rules if a is not b and instance_of(a, b)]
    assert not wrong


def test_two_broadcasts_that_are_equal_at_the_sizes_found_need_not_be_in_general() -> None:
    """A convolution that happens to keep the size of its input, scaled before and after."""
    x, k, factor = variable("x", (2, 4, 5, 6)), variable("k", (4, 4, 3, 3)), Expand((), (2, 4, 5, 6))(variable("a", ()))
    conv = Conv((1, 1), (1, 1, 1, 1))
    assert conv(x, k).shape == x.shape
    rule = generalized(Mul()(conv(x, k), factor), conv(Mul()(x, factor), k), LADDER[0])
    assert rule is not None
    assert not rule.conditions
    assert isinstance(verify(rule), Proved)
