"""Verdicts on rules: proved by the solver and executed on examples, refuted by a witness, or unknown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from superopt.arithmetic.carrier import Array
from superopt.arithmetic.exact import EXACT
from superopt.dim import Condition
from superopt.errors import SuperoptError
from superopt.evaluate import evaluate_all, sample
from superopt.operators.constant import Scalar
from superopt.operators.declared import Declared
from superopt.operators.instances import small_instances
from superopt.operators.symbolic import all_symbols
from superopt.rules.ranks import at_rank
from superopt.rules.rule import Rule, of_any_rank
from superopt.term import Fact, Term, subterms, variables
from superopt.verify.prove import RESOURCES, Proved, Unknown, prove
from superopt.verify.witness import Witness, differing, find_witness

EXAMPLES = 3
"""On how many shapes, at least, every proved rule is also executed."""

UNCOMPUTABLE = (ArithmeticError, MemoryError, RecursionError, ValueError, IndexError, SuperoptError)
"""What attributes that mean nothing, and numbers past all bounds, end in when a rule is executed."""

OTHER_RANKS = (0, 2, 4)
"""At which ranks a rule about any is executed too; it is proved at rank 1."""

TRIED = 12
"""On how many shapes a rule is executed that the solver did not prove."""


@dataclass(frozen=True)
class Difference:
    """Both sides are well formed at these sizes, and differ in this carrier on the values of this seed."""

    shapes: tuple[tuple[str, str], ...]
    carrier: str
    seed: int

    def __str__(self) -> str:
        return f"differs for {', '.join(f'?{n} {s}' for n, s in self.shapes)} ({self.carrier}, seed {self.seed})"


@dataclass(frozen=True)
class Refuted:
    """Wrong: both sides have a value for this witness, and differ."""

    witness: Witness

    def __str__(self) -> str:
        return str(self.witness)


Verdict: TypeAlias = "Proved | Refuted | Unknown"


def verify(rule: Rule, seed: int = 0) -> Verdict:
    """Execute the rule on small examples, then prove it; a witness where they differ.

    Nothing but its terms and conditions is believed; the laws that it says it was proved by are tried first.
    """
    return judged(rule, attempt(rule, seed), seed)


def judged(rule: Rule, attempted: Proved | Difference | Unknown, seed: int = 0) -> Verdict:
    """The verdict after an attempt: where it did not prove, a witness is looked for."""
    if isinstance(attempted, Proved):
        return attempted
    try:
        witness = find_witness(rule, seed)
    except UNCOMPUTABLE:
        witness = None
    if witness is not None:
        return Refuted(witness)
    return Unknown(f"{attempted}, but no plain integers show it") if isinstance(attempted, Difference) else attempted


def attempt(rule: Rule, seed: int = 0, resources: int = RESOURCES) -> Proved | Difference | Unknown:
    """What `verify` does, but for the witness: where examples differ, the first that does."""
    try:
        return _attempted(rule, seed, resources)
    except UNCOMPUTABLE as error:
        return Unknown(f"it cannot be executed: {' '.join(str(error).split())[:200] or type(error).__name__}")


def _attempted(rule: Rule, seed: int, resources: int) -> Proved | Difference | Unknown:
    tried = execute(rule.source, rule.target, rule.conditions, EXAMPLES, seed, rule.facts)
    if isinstance(tried, Difference):
        return tried
    for rank in OTHER_RANKS if of_any_rank(*rule.given) else ():
        one = at_rank(rule, rank)
        other = execute(one.source, one.target, one.conditions, 1, seed, one.facts)
        if isinstance(other, Difference):
            return other
    verdict = prove(rule.source, rule.target, rule.conditions, rule.facts, resources, hint=rule.by)
    enough = EXAMPLES if all_symbols(*rule.source, *rule.target) else 1
    if isinstance(verdict, Proved) and tried < enough:
        return Unknown(f"proved, but only {tried} shapes were found to execute it on: its condition may never hold")
    if isinstance(verdict, Unknown):
        more = execute(rule.source, rule.target, rule.conditions, TRIED, seed + 1, rule.facts)
        return more if isinstance(more, Difference) else verdict
    return verdict


def execute(
    source: Sequence[Term],
    target: Sequence[Term],
    given: Sequence[Condition],
    count: int,
    seed: int,
    facts: Sequence[Fact] = (),
) -> int | Difference:
    """Evaluate both sides at up to `count` small shapes: on how many they agree, or where they differ."""
    done = 0
    for example in small_instances((*source, *target), given, count, seed):
        found = differs(example[: len(source)], example[len(source) :], seed + done, facts)
        if found is not None:
            return found
        done += 1
    return done


def differs(
    left: tuple[Term, ...], right: tuple[Term, ...], seed: int, facts: Sequence[Fact] = ()
) -> Difference | None:
    """Where both sides, at sizes that are numbers, differ.

    A difference counts in carriers that have all the operators need. Agreement is asked for in one carrier at least:
    what a carrier lacks is a keyed hash there, under which only what holds for any function agrees. What holds only for
    some numbers, as the facts tell, is compared in 64-bit floating point on such.
    """
    example = (*left, *right)
    if any(a.type != b.type for a, b in zip(left, right, strict=True)):
        return _difference(example, "types", seed)
    if facts:
        return (
            None if differing(left, right, facts, seed, simple=False) is None else _difference(example, "float", seed)
        )
    agreed, needs = False, _needs(example)
    for ring in sorted(EXACT, key=lambda ring: not needs <= ring.has):
        if agreed and not needs <= ring.has:
            break  # what differs here, and what does not, would tell nothing new
        found = evaluate_all(example, ring, sample(example, ring, seed))
        same = all(map(_equal, found[: len(left)], found[len(left) :]))
        agreed = agreed or same
        if not same and needs <= ring.has:
            return _difference(example, ring.name, seed)
    return None if agreed else _difference(example, "every carrier", seed)


def _equal(a: Array, b: Array) -> bool:
    return bool((a == b).all())


def _needs(roots: Sequence[Term]) -> frozenset[str]:
    """What a carrier must have to express all operators, besides sums and products."""
    operators = [t.operator for t in subterms(*roots) if isinstance(t.operator, Declared)]
    fractions = {"div" for op in operators if isinstance(op, Scalar) and not op.value.is_integer()}
    return frozenset(fractions).union(*(op.needs for op in operators))


def _difference(example: Sequence[Term], carrier: str, seed: int) -> Difference:
    return Difference(tuple((v.label, str(v.shape)) for v in variables(*example)), carrier, seed)
