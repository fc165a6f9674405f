"""The whole way from a family to proved rules: grow, pair, prune, generalize, verify, prune again."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from multiprocessing import get_context

from superopt.arithmetic import EXACT
from superopt.enumerate.family import Family
from superopt.enumerate.generalize import abstracted, generalizations
from superopt.enumerate.grow import Progress, grow
from superopt.errors import RuleError
from superopt.evaluate import evaluate, sample
from superopt.operators.instances import all_symbols
from superopt.rules.format import parse_rule, print_rule
from superopt.rules.match import instance_of
from superopt.rules.rule import Rule
from superopt.term import Term, subterms, variables
from superopt.text import Form, read
from superopt.verify.check import Proved, Refuted, verify


@dataclass
class Generated:
    """Proved rules, and how many things there were at each stage."""

    rules: list[Rule]
    counts: dict[str, int]
    unknown: list[str] = field(default_factory=list)
    seconds: float = 0.0


def generate(
    family: Family, max_ops: int = 2, seed: int = 0, workers: int = 1, progress: Progress | None = None
) -> Generated:
    """Find and prove all rules of up to `max_ops` operators a side. The result depends on the seed alone."""
    start = time.monotonic()
    grown = grow(family, max_ops, seed, progress)
    counts = {"terms": sum(map(len, grown.levels)), "evaluated": grown.evaluated, "candidates": len(grown.candidates)}
    pairs = distinct([p for c in grown.candidates for p in _directions(*abstracted(*c, _same_value))])
    counts["directed, shared parts abstracted"] = len(pairs)
    groups = _ladders(pairs, progress)
    counts["different when generalized"] = len(groups)
    found, unknown, refuted = _verified(groups, workers, progress)
    counts |= {"refuted": refuted, "unknown": len(unknown), "proved": len(found)}
    rules = named(prune_instances(found, progress))
    counts["rules"] = len(rules)
    return Generated(rules, counts, unknown, time.monotonic() - start)


def distinct(pairs: list[tuple[Term, Term]]) -> list[tuple[Term, Term]]:
    """Each pair once, in the order found."""
    return list(dict.fromkeys(pairs))


def _directions(a: Term, b: Term) -> Iterator[tuple[Term, Term]]:
    """An equation as rewrites: from a term that binds all variables, and not to one that contains it."""
    for source, target in ((a, b), (b, a)):
        bound = set(variables(source))
        if not source.is_variable and set(variables(target)) <= bound and source not in set(subterms(target)):
            yield source, target


def _same_value(left: Term, right: Term) -> bool:
    return any(bool((evaluate(left, r, e) == evaluate(right, r, e)).all()) for r in EXACT for e in [sample((left, right), r, 1)])


def _ladders(pairs: list[tuple[Term, Term]], progress: Progress | None) -> list[list[Rule]]:
    """For each pair its generalizations; pairs whose most general form is the same are tried once."""
    ladders: dict[tuple[Term, ...], list[Rule]] = {}
    for i, (source, target) in enumerate(pairs):
        if progress and i % 64 == 0:
            progress("generalize", i, len(pairs))
        steps = list(generalizations(source, target, f"candidate-{i}"))
        if steps:
            ladders.setdefault((*steps[0].source, *steps[0].target), steps)
    return list(ladders.values())


def _verified(
    groups: list[list[Rule]], workers: int, progress: Progress | None
) -> tuple[list[Rule], list[str], int]:
    found: list[Rule] = []
    unknown: list[str] = []
    refuted = 0
    texts = [[print_rule(r) for r in group] for group in groups]
    for i, (proved, why) in enumerate(_answers(texts, workers)):
        if progress and i % 8 == 0:
            progress("prove", i, len(groups))
        if proved is not None:
            found.append(_read(proved))
        elif why is None:
            refuted += 1
        else:
            unknown.append(f"{texts[i][0]}; {why}")
    return found, unknown, refuted


def _answers(texts: list[list[str]], workers: int) -> Iterator[tuple[str | None, str | None]]:
    if workers <= 1:
        yield from map(first_proved, texts)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield from pool.map(first_proved, texts, chunksize=8)


def first_proved(ladder: list[str]) -> tuple[str | None, str | None]:
    """The first rule of a ladder that proves, as text with its laws; else None, and why the first open one is unknown
    (None where all are refuted)."""
    why: str | None = None
    for text in ladder:
        rule = _read(text)
        free = replace(rule, conditions=())
        for attempt in [free, rule] if rule.conditions else [free]:
            verdict = verify(attempt)
            if isinstance(verdict, Proved):
                return print_rule(replace(attempt, by=verdict.laws)), None
            if not isinstance(verdict, Refuted) and why is None:
                why = verdict.why
    return None, why


def _read(text: str) -> Rule:
    (sexp,) = read(text)
    if not isinstance(sexp, Form):
        raise RuleError(f"not a rule: {text}")
    return parse_rule(sexp)


def prune_instances(rules: list[Rule], progress: Progress | None = None) -> list[Rule]:
    """Drop every rule that is an instance of another that is kept; the more general come first."""
    kept: list[Rule] = []
    for i, rule in enumerate(sorted(rules, key=_specificity)):
        if progress and i % 16 == 0:
            progress("prune instances", i, len(rules))
        if not any(instance_of(rule, general) for general in kept):
            kept.append(rule)
    return kept


def _specificity(rule: Rule) -> tuple[int, int, int, str]:
    """Small and with many variables and symbols first; the text decides between equals."""
    sides = (*rule.source, *rule.target)
    return (len(list(subterms(*sides))), -len(rule.given), -len(all_symbols(*rule.source)), print_rule(rule))


def named(rules: list[Rule]) -> list[Rule]:
    """Rules called by the operators of both sides, numbered where that is not enough, in order of name."""
    bases = ["-".join([*_words(r.source), "to", *_words(r.target)]) for r in rules]
    totals, used = Counter(bases), Counter[str]()
    result = []
    for rule, base in zip(rules, bases, strict=True):
        used[base] += 1
        result.append(replace(rule, name=f"{base}-{used[base]}" if totals[base] > 1 else base))
    return sorted(result, key=lambda r: r.name)


def _words(side: tuple[Term, ...]) -> list[str]:
    names = [t.operator.name for t in subterms(*side) if not t.is_variable and t.operator.name != "expand"]
    return names[::-1] or ["itself"]
