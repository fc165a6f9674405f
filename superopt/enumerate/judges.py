"""Judging many rules in several processes: what proves, and against what there is a witness."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeAlias

from superopt.enumerate.checkpoint import Verdict
from superopt.errors import RuleError
from superopt.rules.format import print_rule
from superopt.rules.parser import parse_rule
from superopt.rules.rule import Rule
from superopt.text import Form, read
from superopt.verify.check import UNCOMPUTABLE, Difference, attempt
from superopt.verify.conditions import learn, suppose
from superopt.verify.prove import Proved
from superopt.verify.witness import find_witness
from superopt.workers import processes

Judges: TypeAlias = "Callable[[Sequence[str]], Iterable[Verdict]]"
"""Say of each rule's text, in order, what `first_proved`, `first_refuted` or `first_learned` does."""

WITNESS_SIZES = 40
"""At how many sizes, the smallest, a witness is looked for."""

CONDITIONS = 8
"""How many conditions are tried for one rule."""

RESOURCES = 300_000
"""Resource units for one proof: three times what any rule has taken that was ever proved."""


@contextmanager
def judges(workers: int, judge: Callable[[str], Verdict]) -> Iterator[Judges]:
    """So many processes that judge; with one worker, this one does. What they say depends on the texts alone."""
    if workers <= 1:
        yield lambda texts: map(judge, texts)
        return
    with processes(workers) as pool:
        yield lambda texts: pool.map(judge, texts, chunksize=4)


def first_proved(text: str) -> Verdict:
    """A rule's text with its laws, where it proves: without its condition, if it can, or under facts on its variables,
    if it must. Else None, and why it is unknown (None where it is refuted).
    """
    rule = read_rule(text)
    why: str | None = None
    for form in [replace(rule, conditions=()), rule] if rule.conditions else [rule]:
        verdict = attempt(form, resources=RESOURCES)
        if isinstance(verdict, Proved):
            return print_rule(replace(form, by=verdict.laws)), None
        if not isinstance(verdict, Difference):
            why = verdict.why
    supposed = suppose(rule, resources=RESOURCES) if why is not None else None
    return (None, why) if supposed is None else (print_rule(supposed), None)


def first_refuted(text: str) -> Verdict:
    """The first witness against a rule that did not prove, in words; else None."""
    try:
        witness = find_witness(read_rule(text), most=WITNESS_SIZES)
    except UNCOMPUTABLE:
        witness = None
    return (None if witness is None else str(witness)), None


def first_learned(text: str) -> Verdict:
    """A rule that did not prove, under the weakest condition found that proves it; else None."""
    learned = learn(read_rule(text), attempts=CONDITIONS)
    return (None if learned is None else print_rule(learned.rule)), None


def read_rule(text: str) -> Rule:
    """The one rule of a text. Raises `RuleError`."""
    (sexp,) = read(text)
    if not isinstance(sexp, Form):
        raise RuleError(f"not a rule: {text}")
    return parse_rule(sexp)
