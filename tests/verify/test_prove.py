"""The prover: every shipped rule again, from the laws alone; its limits; and that it proves nothing wrong."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from itertools import pairwise

import pytest

from benchmarks.mutants import mutants
from superopt.demands import assuming
from superopt.dim import symbol
from superopt.operators.constant import Scalar
from superopt.operators.instances import small_instances
from superopt.operators.laws.collected import Law, Scope, laws_in
from superopt.operators.layout import Expand
from superopt.operators.pointwise import Add, Mul, Relu
from superopt.operators.symbolic import all_symbols
from superopt.rules.format import load_rules, parse_file, print_rule
from superopt.rules.rule import Rule
from superopt.shipped import shipped_rules
from superopt.term import Term, variable
from superopt.verify import prove as prover
from superopt.verify.check import Difference, execute, verify
from superopt.verify.prove import Proved, Unknown, prove
from superopt.verify.witness import differing

RULES = [rule for path in shipped_rules() for rule in load_rules(path).rules]
LEAST = 100
"""Fewer rules than this were hardly the shipped ones."""


def test_shipped_rules_prove_afresh() -> None:
    """Some: all are sealed, and `superopt rules verify` proves all."""
    assert len(RULES) >= LEAST
    for rule in random.Random(7).sample(RULES, 500):
        verdict = verify(rule, seed=1)
        assert isinstance(verdict, Proved), f"{print_rule(rule)}{verdict}"


@pytest.mark.parametrize("rule", random.Random(0).sample(RULES, 30), ids=lambda r: r.name)
def test_a_rule_proves_from_the_laws_that_it_names_alone(rule: Rule, monkeypatch: pytest.MonkeyPatch) -> None:
    def named(scope: Scope) -> list[Law]:
        return [law for law in laws_in(scope) if law.name in rule.by]

    monkeypatch.setattr(prover, "laws_in", named)
    verdict = prove(rule.source, rule.target, rule.conditions, rule.facts)
    assert isinstance(verdict, Proved)
    assert set(verdict.laws) <= set(rule.by)


@pytest.mark.parametrize("rule", random.Random(1).sample(RULES, 10), ids=lambda r: r.name)
def test_without_any_law_only_what_is_congruent_proves(rule: Rule, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prover, "laws_in", lambda scope: [])
    monkeypatch.setattr(prover, "_holds_for_elements", lambda *_: False)
    assert isinstance(prove(rule.source, rule.target, rule.conditions, rule.facts), Unknown) == bool(rule.by)


def test_sides_of_different_element_types_are_not_proved() -> None:
    """What is cut off is of truth values: the shapes are right, and all else is of numbers."""
    text = """(rule r (given (?x n c h w) (?y n o h w)) (from (slice 1 c a (concat 1 ?x ?y)))
      (to (slice 1 c a (concat 1 (less_or_equal ?x ?x) ?y))))"""
    (wrong,) = parse_file(text).rules
    assert isinstance(prove(wrong.source, wrong.target), Unknown)


def test_no_wrong_mutant_of_a_shipped_rule_proves() -> None:
    rng = random.Random(2)
    kinds: dict[str, int] = {}
    for rule in rng.sample(RULES, 70):
        by_kind: dict[str, list[Rule]] = {}
        for kind, mutant in mutants(rule):
            by_kind.setdefault(kind, []).append(mutant)
        for kind, some in by_kind.items():
            for mutant in rng.sample(some, min(2, len(some))):
                kinds[kind] = kinds.get(kind, 0) + 1
                _demand_not_wrongly_proved(mutant)
    assert sum(kinds.values()) >= 200, kinds
    assert len(kinds) == 9, kinds


def _demand_not_wrongly_proved(mutant: Rule) -> None:
    verdict = prove(mutant.source, mutant.target, mutant.conditions, resources=200_000)
    if isinstance(verdict, Proved):  # some changes change nothing: then it is true when executed, too
        done = execute(mutant.source, mutant.target, mutant.conditions, count=8, seed=4)
        if isinstance(done, Difference) and done.carrier == "every carrier":
            done = _agreements(mutant)  # it holds of functions that exact carriers have in name only: tanh x <= x
        assert isinstance(done, int), f"proved, and wrong: {print_rule(mutant)}{verdict}\n{done}"
        enough = 3 if all_symbols(*mutant.source, *mutant.target) else 1  # numbers have one shape
        assert done >= enough, f"proved, and hardly executed: {print_rule(mutant)}"


def _agreements(rule: Rule) -> int | str:
    """At how many small shapes both sides agree in 64-bit floating point, or where they do not."""
    done, count = 0, len(rule.source)
    for example in small_instances((*rule.source, *rule.target), rule.conditions, 8, seed=4):
        if differing(example[:count], example[count:], rule.facts, seed=4 + done, simple=False) is not None:
            return f"they differ at {example}"
        done += 1
    return done


def test_no_rule_proves_with_a_target_of_other_values() -> None:
    """Beside each rule that proves: one that differs in each element, so that the theory is seen to be consistent."""
    for rule in random.Random(3).sample(RULES, 60):
        wrong = [_shifted(t) for t in rule.target]
        assert isinstance(prove(rule.source, wrong, rule.conditions, resources=200_000), Unknown), print_rule(rule)


def _shifted(term: Term) -> Term:
    one = Scalar(1.0)()
    with assuming():
        return Add()(term, Expand((), term.shape)(one) if term.shape else one)


def test_the_verdict_does_not_depend_on_what_was_proved_before() -> None:
    some = random.Random(5).sample(RULES, 12)
    forwards = [prove(r.source, r.target, r.conditions) for r in some]
    backwards = [prove(r.source, r.target, r.conditions) for r in reversed(some)]
    assert forwards == list(reversed(backwards))


def test_the_verdict_does_not_depend_on_the_process() -> None:
    rule = RULES[len(RULES) // 2]
    program = (
        "import sys; from superopt.rules.format import parse_file; from superopt.verify.check import verify;"
        "print(verify(parse_file(sys.stdin.read()).rules[0]))"
    )
    answers = {
        subprocess.run(
            [sys.executable, "-c", program], input=print_rule(rule), capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    }
    assert answers == {f"{verify(rule)}\n"}


def test_names_of_variables_and_sizes_do_not_matter() -> None:
    x, y, z = (variable(n, (symbol("size2_0"), symbol("e0"))) for n in ("e0", "wf2", "size2_0"))
    assert isinstance(prove([Add()(Add()(x, y), z)], [Add()(x, Add()(z, y))]), Proved)


def test_a_limit_on_resources_gives_unknown() -> None:
    rule = RULES[0]
    assert isinstance(prove(rule.source, rule.target, rule.conditions, resources=1), Unknown)


def test_a_problem_that_is_too_large_ends_in_unknown_and_soon() -> None:
    tensors = [variable(f"x{i}", (symbol("n"),)) for i in range(9)]
    left = right = tensors[0]
    for _, t in pairwise(tensors):
        left, right = Add()(Mul()(left, t), t), Add()(t, Mul()(t, right))
    start = time.monotonic()
    verdict = prove([left], [Relu()(right)], resources=1_000_000)
    assert isinstance(verdict, Unknown)
    assert time.monotonic() - start < 60


def test_sides_of_different_rank_are_not_equal() -> None:
    x = variable("x", (symbol("n"),))
    assert isinstance(prove([Relu()(x)], [variable("y", ())]), Unknown)
