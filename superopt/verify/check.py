"""Verdicts on rules: proved by the solver and executed on examples, refuted by an executed example, or unknown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from superopt.arithmetic import EXACT
from superopt.dim import Condition
from superopt.evaluate import evaluate_all, sample
from superopt.operators.declare import Declared
from superopt.operators.instances import small_instances
from superopt.rules.rule import Rule
from superopt.term import Term, subterms, variables
from superopt.verify.prove import Proved, Unknown, prove

EXAMPLES = 3
"""On how many shapes, at least, every proved rule is also executed."""

TRIED = 6
"""On how many shapes a rule is executed before the solver is asked."""


@dataclass(frozen=True)
class Refuted:
    """Wrong: both sides are well formed at these sizes, and differ in this carrier on the values of this seed."""

    shapes: tuple[tuple[str, str], ...]
    carrier: str
    seed: int

    def __str__(self) -> str:
        return f"differs for {', '.join(f'?{n} {s}' for n, s in self.shapes)} ({self.carrier}, seed {self.seed})"


Verdict: TypeAlias = "Proved | Refuted | Unknown"


def verify(rule: Rule, seed: int = 0) -> Verdict:
    """Execute the rule on small examples, then prove it. Nothing but its terms and condition is looked at."""
    tried = execute(rule.source, rule.target, rule.conditions, TRIED, seed)
    if isinstance(tried, Refuted):
        return tried
    verdict = prove(rule.source, rule.target, rule.conditions)
    if isinstance(verdict, Proved) and tried < EXAMPLES and len(variables(*rule.source)) > 0:
        return Unknown(f"proved, but only {tried} shapes were found to execute it on: its condition may never hold")
    return verdict


def execute(
    source: Sequence[Term], target: Sequence[Term], given: Sequence[Condition], count: int, seed: int
) -> int | Refuted:
    """Evaluate both sides at up to `count` small shapes: on how many they agree, or where they differ.

    A difference counts in carriers that have all the operators need. Agreement is asked for in one carrier at least:
    what a carrier lacks is a keyed hash there, under which only what holds for any function agrees.
    """
    roots, done = (*source, *target), 0
    for example in small_instances(roots, given, count, seed):
        left, right = example[: len(source)], example[len(source) :]
        if any(a.type != b.type for a, b in zip(left, right, strict=True)):
            return _refuted(example, "types", seed)
        agreed = False
        for ring in EXACT:
            values = sample(example, ring, seed + done)
            same = all(map(_equal, evaluate_all(left, ring, values), evaluate_all(right, ring, values)))
            agreed = agreed or same
            if not same and _needs(example) <= ring.has:
                return _refuted(example, ring.name, seed + done)
        if not agreed:
            return _refuted(example, "every carrier", seed + done)
        done += 1
    return done


def _equal(a: object, b: object) -> bool:
    return bool((a == b).all())  # type: ignore[attr-defined]


def _needs(roots: Sequence[Term]) -> frozenset[str]:
    needs: frozenset[str] = frozenset()
    for t in subterms(*roots):
        if isinstance(t.operator, Declared):
            needs |= t.operator.needs
    return needs


def _refuted(example: Sequence[Term], carrier: str, seed: int) -> Refuted:
    return Refuted(tuple((v.label, str(v.shape)) for v in variables(*example)), carrier, seed)
