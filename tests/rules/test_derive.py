"""Deriving an equation by directed steps of rules."""

from __future__ import annotations

import pytest

from superopt.operators.reader import read_term
from superopt.rules.derive import Rules
from superopt.rules.format import parse_file
from superopt.rules.match import commuted
from superopt.rules.rule import Rule
from superopt.rules.steps import Target
from superopt.rules.work import operators
from superopt.term import Fact, Term, subterms, variable
from superopt.text import read

GIVEN = "(given (?x n m) (?y n m) (?z n m))"
RULES = parse_file(
    f"(rule assoc {GIVEN} (from (add (add ?x ?y) ?z)) (to (add ?x (add ?y ?z))))"
    "(rule twice (given (?x n m)) (from (relu (relu ?x))) (to (relu ?x)))"
    f"(rule share (given (?x n m) (?y m k) (?z m r)) (from (matmul ?x ?y) (matmul ?x ?z))"
    " (where (?w (matmul ?x (concat 1 ?y ?z)))) (to (slice 1 0 k ?w) (slice 1 k (+ k r) ?w)))"
).rules
NAMES = {label: variable(label, (3, 5)) for label in "abcd"} | {"w": variable("w", (5, 2)), "v": variable("v", (5, 4))}


def term(text: str) -> Term:
    (sexp,) = read(text)
    return read_term(sexp, NAMES)


def steps(source: str, target: str, most: int = 3, rules: tuple[Rule, ...] = RULES) -> list[str] | None:
    found = Rules(rules).steps((term(source),), (term(target),), most)
    return None if found is None else [step.rule.name for step in found]


CASES = {
    "none where both sides are one": ("(add ?a ?b)", "(add ?a ?b)", []),
    "none where they differ in the order of a sum": ("(add ?a ?b)", "(add ?b ?a)", []),
    "one anywhere below": ("(relu (mul ?a (relu (relu ?b))))", "(relu (mul ?a (relu ?b)))", ["twice"]),
    "two of one rule": ("(add (add (add ?a ?b) ?c) ?d)", "(add ?a (add ?b (add ?c ?d)))", ["assoc", "assoc"]),
    "of two rules": ("(add (add (relu (relu ?a)) ?b) ?c)", "(add (relu ?a) (add ?b ?c))", ["assoc", "twice"]),
    "none backwards": ("(relu ?a)", "(relu (relu ?a))", None),
    "none of what is untrue": ("(add ?a ?b)", "(mul ?a ?b)", None),
}


@pytest.mark.parametrize("case", CASES)
def test_the_steps_are(case: str) -> None:
    source, target, wanted = CASES[case]
    found = steps(source, target)
    assert (found and sorted(found)) == wanted


def test_no_more_steps_are_taken_than_allowed() -> None:
    source, target = "(relu (relu (relu (relu ?a))))", "(relu ?a)"
    assert steps(source, target, most=3) == ["twice"] * 3
    assert steps(source, target, most=2) is None


WHERE = {
    "at what is no part of the target, or below or above it": ("(add (relu (relu ?a)) ?b)", "(add (relu ?a) ?b)", 3),
    "nowhere beside it": ("(mul (relu (relu ?a)) (add ?b ?c))", "(mul (relu ?a) (add ?b ?c))", 3),
    "nowhere where two such places are apart": ("(mul (neg ?a) (neg ?b))", "(mul ?a ?b)", 1),
    "anywhere where all is part of the target": ("(add ?a ?b)", "(relu (add ?a ?b))", 1),
}


@pytest.mark.parametrize("case", WHERE)
def test_the_last_step_is_looked_for(case: str) -> None:
    """How many operators of a graph may be replaced so that it is the target then."""
    source, target, places = WHERE[case]
    below = [t for t in subterms(term(source)) if not t.is_variable]
    assert len(Target.of((commuted(term(target)),)).where(below, commuted)) == places


@pytest.mark.parametrize("name", ["assoc", "twice"])
def test_a_final_rule_is_the_last_step(name: str) -> None:
    source, target = (term("(add (add (relu (relu ?a)) ?b) ?c)"),), (term("(add (relu ?a) (add ?b ?c))"),)
    found = Rules(RULES, final=lambda rule: rule.name == name).steps(source, target, beyond_final=False)
    assert found is not None
    assert [step.rule.name for step in found][1:] == [name]


def test_no_step_goes_on_from_what_a_final_rule_makes() -> None:
    source, target = (term("(add (add (relu (relu ?a)) ?b) ?c)"),), (term("(add (relu ?a) (add ?b ?c))"),)
    rules = Rules(RULES, final=lambda _: True)
    assert rules.steps(source, target, beyond_final=False) is None
    assert rules.steps(source, target) is not None


def test_each_step_leads_to_the_next() -> None:
    source, target = term("(add (add (relu (relu ?a)) ?b) ?c)"), term("(add (relu ?a) (add ?b ?c))")
    found = Rules(RULES).steps((source,), (target,))
    assert found is not None
    assert found[-1].result == (target,)
    before = [(source,), *(step.result for step in found)]
    for state, step in zip(before, found, strict=False):
        assert step.result in [s.result for s in Rules([step.rule]).one_step(state)]


def test_a_rule_of_two_outputs_is_a_step_of_a_graph_with_both() -> None:
    source = (term("(matmul ?a ?w)"), term("(relu (matmul ?a ?v))"))
    whole = "(matmul ?a (concat 1 ?w ?v))"
    target = (term(f"(slice 1 0 2 {whole})"), term(f"(relu (slice 1 2 6 {whole}))"))
    found = Rules(RULES).steps(source, target)
    assert found is not None
    assert [s.rule.name for s in found] == ["share"]


def test_what_is_much_larger_than_both_sides_is_not_gone_through() -> None:
    grows = parse_file(
        "(rule grow (given (?x n m)) (from (relu ?x)) (to (relu (relu (relu (relu ?x))))))"
        "(rule turn (given (?x n m)) (from (relu (relu (relu (relu ?x))))) (to (abs ?x)))"
    ).rules
    assert steps("(relu ?a)", "(abs ?a)", rules=tuple(grows)) is None
    found = Rules(grows).steps((term("(relu ?a)"),), (term("(abs ?a)"),), more=3)
    assert found is not None


def test_the_rule_that_another_is_an_instance_of_is_found() -> None:
    special = parse_file("(rule s (given (?x n n)) (from (relu (relu (mul ?x ?x)))) (to (relu (mul ?x ?x))))").rules[0]
    covering = Rules(RULES).covering(special)
    assert covering is not None
    assert covering.name == "twice"
    assert Rules(RULES[:1]).covering(special) is None


def test_broadcasts_are_not_counted_as_operators() -> None:
    (rule,) = parse_file(
        "(rule b (given (?x n m) (?y)) (from (mul ?x (expand () ?y))) (to (mul (expand () ?y) ?x)))"
    ).rules
    assert operators(rule.source) == 1


def test_what_is_made_of_constants_is_not_counted_as_operators() -> None:
    assert operators((term("(matmul ?a (transpose (1 0) (band 5)))"),)) == 1


def test_facts_of_variables_let_rules_apply_that_ask_for_them_and_are_not_remembered() -> None:
    (rule,) = parse_file("(rule abs-of-positive (given (?x n m)) (if (nonnegative ?x)) (from (abs ?x)) (to ?x))").rules
    known, states = Rules([rule]), ((term("(abs ?a)"),), (NAMES["a"],))
    fact = Fact("nonnegative", NAMES["a"])
    for facts, wanted in (((), None), ((fact,), ["abs-of-positive"]), ((), None)):
        found = known.steps(*states, facts=facts)
        assert (found and [step.rule.name for step in found]) == wanted


def test_rules_added_later_are_tried_on_terms_that_were_seen() -> None:
    known = Rules(RULES[:1])
    states = ((term("(relu (relu ?a))"),), (term("(relu ?a)"),))
    assert known.steps(*states) is None
    known.add(RULES[1])
    assert known.steps(*states) is not None
