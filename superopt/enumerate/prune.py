"""Which proved rules are written: no instance of another, and none that three steps of others replay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from superopt.enumerate.grow import Progress
from superopt.operators.facts import supposing
from superopt.operators.instances import all_symbols
from superopt.rules.derive import Rules
from superopt.rules.format import print_rule
from superopt.rules.match import instance_of
from superopt.rules.rule import Rule
from superopt.term import Term, subterms


def prune_instances(rules: list[Rule], progress: Progress | None = None) -> list[Rule]:
    """Drop every rule that is an instance of another that is kept; of two that are of each other, the later."""
    kept: list[Rule] = []
    for i, rule in enumerate(sorted(rules, key=_specificity)):
        if progress and i % 16 == 0:
            progress("prune instances", i, len(rules))
        if not any(instance_of(rule, general) for general in kept):
            # A special rule may come first: what it uses twice counts once.
            kept = [*(k for k in kept if not instance_of(k, rule)), rule]
    return kept


MUCH = 1.25
"""How much more work than either side a replay may pass through: a search goes through little more."""


def macros(rules: list[Rule], beside: Sequence[Rule] = (), progress: Progress | None = None) -> list[Rule]:
    """Without rules that those kept, and those `beside`, replay in three directed steps, through nothing much costlier.

    A search takes these steps itself; what takes more it would not find.
    """
    kept: list[Rule] = []
    known = Rules(beside)
    for i, rule in enumerate(sorted(rules, key=_specificity)):
        if progress and i % 16 == 0:
            progress("replay", i, len(rules))
        with supposing(rule.facts):
            replayed = known.steps(rule.source, rule.target, much=MUCH) is not None
        if not replayed:
            kept.append(rule)
            known.add(rule)
    return kept


def _specificity(rule: Rule) -> tuple[int, int, int, str]:
    """Small and with many variables and symbols first; the text decides between equals."""
    sides = (*rule.source, *rule.target)
    operators = sum(not t.is_variable for t in subterms(*sides))
    return (operators, -len(rule.given), -len(all_symbols(*rule.source)), print_rule(rule))


def named(rules: list[Rule], beside: Sequence[Rule] = ()) -> list[Rule]:
    """Rules called by the operators of both sides, in order of name; numbered where that is not enough, after those
    `beside`.
    """
    bases = ["-".join([*_words(r.source), "to", *_words(r.target)]) for r in rules]
    totals, used = Counter(bases), Counter[str]()
    for rule in beside:
        base, _, number = rule.name.rpartition("-")
        taken = (base, int(number)) if number.isdigit() else (rule.name, 1)
        used[taken[0]] = max(used[taken[0]], taken[1])
    result = []
    for rule, base in zip(rules, bases, strict=True):
        used[base] += 1
        alone = totals[base] == used[base] == 1
        result.append(replace(rule, name=base if alone else f"{base}-{used[base]}"))
    return sorted(result, key=lambda r: r.name)


def _words(side: tuple[Term, ...]) -> list[str]:
    names = [t.operator.name for t in subterms(*side) if not t.is_variable and t.operator.name != "expand"]
    return names[::-1] or ["itself"]
