"""The whole way from a family to proved rules: grow, pair, prune, generalize, verify, prune again."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing import get_context
from typing import TypeAlias

from superopt.arithmetic import EXACT
from superopt.enumerate.checkpoint import Checkpoint, Verdict
from superopt.enumerate.equations import equations
from superopt.enumerate.family import SIZES, Family
from superopt.enumerate.generalize import LADDER, Generality, abstracted, generalized
from superopt.enumerate.grow import Progress
from superopt.enumerate.tuples import of_two_outputs
from superopt.errors import RuleError
from superopt.evaluate import evaluate, sample
from superopt.operators.files import DECLARED_IN, declare_files
from superopt.operators.instances import all_symbols, resize
from superopt.operators.reader import term_text
from superopt.rules.derive import Rules
from superopt.rules.format import parse_rule, print_rule
from superopt.rules.match import commuted, instance_of
from superopt.rules.rule import Rule
from superopt.term import Term, replace_all, subterms, variable, variables
from superopt.text import Form, read
from superopt.verify.check import UNCOMPUTABLE, Difference, attempt
from superopt.verify.prove import Proved
from superopt.verify.witness import find_witness

ProveAll: TypeAlias = "Callable[[Sequence[str]], Iterable[Verdict]]"
"""Says of each rule's text, in order, what `first_proved` does."""

Pair: TypeAlias = "tuple[Term, Term]"
"""Two terms that have one value."""

REFUTED = "refuted"

WITNESS = "; against\n"
"""What stands before a rule's text where a witness against it is asked for, and no proof of it."""

WITNESS_SIZES = 40
"""At how many sizes, the smallest, a witness is looked for."""

RESOURCES = 300_000
"""Resource units for one proof: three times what any rule has taken that was ever proved."""


@dataclass
class Generated:
    """Proved rules, and how many things there were at each stage."""

    rules: list[Rule]
    counts: dict[str, int]
    unknown: list[str] = field(default_factory=list)
    seconds: float = 0.0


def generate(
    family: Family,
    max_ops: int = 2,
    seed: int = 0,
    workers: int = 1,
    progress: Progress | None = None,
    checkpoint: Checkpoint | None = None,
    memory: float | None = None,
    beside: Sequence[Rule] = (),
) -> Generated:
    """Find and prove all rules of up to `max_ops` operators a side. The result depends on the seed alone.

    `memory` is a limit in GB: a level that would pass it is left out, and so is what comes after; the counts say so.
    What the rules `beside` replay is left out.
    """
    start = time.monotonic()
    found_equal = equations(family, max_ops, seed, progress, memory)
    counts = found_equal.counts
    shared = [abstracted(*pair, _same_value) for pair in found_equal.pairs]
    pairs = distinct([p for pair in shared for p in _directions(*pair)], _named(family))
    counts["directed, shared parts abstracted"] = len(pairs)
    checkpoint = checkpoint or Checkpoint()
    with _pool(workers, first_proved) as run, _pool(workers, first_refuted) as refuting:
        prove_all = partial(checkpoint.verdicts, run)
        found, open_ = _climb(pairs, prove_all, counts, progress)
        unknown = _refute(open_, partial(checkpoint.verdicts, refuting), counts, progress)
        found += _of_two_outputs(found, prove_all, counts, progress)
    found = prune_instances(found, progress)
    counts["instances of no other rule"] = len(found)
    rules = named(macros(found, beside, progress))
    counts["rules"] = len(rules)
    return Generated(rules, counts, unknown, time.monotonic() - start)


def _named(family: Family) -> Sequence[Term]:
    """The variables of a family, at the sizes that equations are stated at."""
    return resize(family.given, family.numbers(SIZES - 1))


def distinct(pairs: list[tuple[Term, Term]], given: Sequence[Term]) -> list[tuple[Term, Term]]:
    """Each pair once, in the order found: variables of one type are named by first use, so renamings are one."""
    return list(dict.fromkeys(_renamed(pair, given) for pair in pairs))


def _renamed(pair: tuple[Term, Term], given: Sequence[Term]) -> tuple[Term, Term]:
    spare: dict[object, Iterator[Term]] = {}
    new: dict[Term, Term] = {}
    for v in variables(*pair):
        names = spare.setdefault(
            (v.type, v.constant), iter([g for g in given if (g.type, g.constant) == (v.type, v.constant)])
        )
        new[v] = next(names, v)
    # Two steps, since a swap of names is not a sequence of renamings.
    aside = {v: variable(f"_{i}", v.shape, constant=v.constant) for i, v in enumerate(new)}
    left, right = replace_all(replace_all(pair, aside), {aside[v]: w for v, w in new.items()})
    return left, right


def _directions(a: Term, b: Term) -> Iterator[tuple[Term, Term]]:
    """An equation as rewrites: from a term that binds all variables, and not to one that contains it."""
    for source, target in ((a, b), (b, a)):
        bound = set(variables(source))
        if not source.is_variable and set(variables(target)) <= bound and source not in set(subterms(target)):
            yield source, target


def _same_value(left: Term, right: Term) -> bool:
    return any(
        bool((evaluate(left, r, e) == evaluate(right, r, e)).all())
        for r in EXACT
        for e in [sample((left, right), r, 1)]
    )


def _climb(
    pairs: list[Pair],
    prove_all: ProveAll,
    counts: dict[str, int],
    progress: Progress | None,
) -> tuple[list[Rule], dict[Pair, str]]:
    """Verify each pair in its most general form, what fails in the next, and so on; each form once."""
    found: list[Rule] = []
    last: dict[tuple[Term, Term], str] = {}
    tried: set[tuple[Term, ...]] = set()
    for number, generality in enumerate(LADDER, start=1):
        forms, failed = _forms(pairs, generality, f"generalize {number}/{len(LADDER)}", progress)
        new = [f for f in forms if f not in tried]
        failed += [pair for f in forms if f in tried for pair in forms[f][1]]
        tried |= set(new)
        for i, (text, why) in enumerate(prove_all([print_rule(forms[f][0]) for f in new])):
            if progress and i % 8 == 0:
                progress(f"prove {number}/{len(LADDER)}", i, len(new))
            if text is not None:
                found.append(_read(text))
            else:
                failed += forms[new[i]][1]
                last |= dict.fromkeys(forms[new[i]][1], why or REFUTED)
        counts[f"forms tried, step {number}"] = len(new)
        pairs = failed
    why_not = {p: last.get(p, "it cannot be stated over symbols") for p in pairs}
    open_ = {p: why for p, why in why_not.items() if why != REFUTED}
    counts |= {"proved": len(found), "refuted": len(why_not) - len(open_)}
    return found, open_


def _refute(
    open_: dict[Pair, str], refute_all: ProveAll, counts: dict[str, int], progress: Progress | None
) -> list[str]:
    """What stays unknown of pairs that did not prove: no witness shows that they differ, in their most general form."""
    forms = {pair: rule for pair in open_ if (rule := generalized(*pair, LADDER[0])) is not None}
    texts = list(dict.fromkeys(f"{WITNESS}{print_rule(rule)}" for rule in forms.values()))
    refuted: set[str] = set()
    for i, (text, (witness, _)) in enumerate(zip(texts, refute_all(texts), strict=True)):
        if progress and i % 8 == 0:
            progress("refute", i, len(texts))
        refuted |= {text} if witness is not None else set()
    wrong = {pair for pair, rule in forms.items() if f"{WITNESS}{print_rule(rule)}" in refuted}
    counts["refuted"] += len(wrong)
    counts["unknown"] = len(open_) - len(wrong)
    return [f"{term_text(a)} = {term_text(b)} ({why})" for (a, b), why in open_.items() if (a, b) not in wrong]


def _of_two_outputs(
    rules: list[Rule], prove_all: ProveAll, counts: dict[str, int], progress: Progress | None
) -> list[Rule]:
    """The rules of two outputs that prove."""
    texts = list(dict.fromkeys(print_rule(rule) for rule in of_two_outputs(rules)))
    found = []
    for i, (text, _) in enumerate(prove_all(texts)):
        if progress and i % 8 == 0:
            progress("prove two outputs", i, len(texts))
        found += [_read(text)] if text is not None else []
    counts["of two outputs"] = len(texts)
    counts["of two outputs, proved"] = len(found)
    return found


Forms = dict[tuple[Term, ...], tuple[Rule, list[tuple[Term, Term]]]]


def _forms(
    pairs: list[tuple[Term, Term]], generality: Generality, stage: str, progress: Progress | None
) -> tuple[Forms, list[tuple[Term, Term]]]:
    """The rules that pairs generalize to, with the pairs that do; and the pairs that cannot be stated so."""
    forms: Forms = {}
    without: list[tuple[Term, Term]] = []
    for i, pair in enumerate(pairs):
        if progress and i % 64 == 0:
            progress(stage, i, len(pairs))
        rule = generalized(*pair, generality)
        if rule is None:
            without.append(pair)
        else:
            key = tuple(map(commuted, (*rule.source, *rule.target)))
            forms.setdefault(key, (rule, []))[1].append(pair)
    return forms, without


@contextmanager
def _pool(workers: int, judge: Callable[[str], Verdict]) -> Iterator[ProveAll]:
    if workers <= 1:
        yield lambda texts: map(judge, texts)
        return
    given = (tuple(DECLARED_IN),)  # a new process knows superopt's own operators only
    with ProcessPoolExecutor(workers, get_context("spawn"), declare_files, given) as pool:
        with _interrupts_held():
            list(pool.map(abs, range(workers)))  # they start now; Ctrl-C, which reaches all, is for the first alone
        try:
            yield lambda texts: pool.map(judge, texts, chunksize=4)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Ctrl-C waits, and never comes to processes that are started meanwhile."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def first_proved(text: str) -> Verdict:
    """A rule's text with its laws, where it proves (without its condition, if it can); else None, and why it is
    unknown (None where it is refuted).
    """
    rule = _read(text)
    why: str | None = None
    for form in [replace(rule, conditions=()), rule] if rule.conditions else [rule]:
        verdict = attempt(form, resources=RESOURCES)
        if isinstance(verdict, Proved):
            return print_rule(replace(form, by=verdict.laws)), None
        if not isinstance(verdict, Difference):
            why = verdict.why
    return None, why


def first_refuted(text: str) -> Verdict:
    """The first witness against a rule that did not prove, in words; else None."""
    try:
        witness = find_witness(_read(text), most=WITNESS_SIZES)
    except UNCOMPUTABLE:
        witness = None
    return (None if witness is None else str(witness)), None


def _read(text: str) -> Rule:
    (sexp,) = read(text)
    if not isinstance(sexp, Form):
        raise RuleError(f"not a rule: {text}")
    return parse_rule(sexp)


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


def macros(rules: list[Rule], beside: Sequence[Rule] = (), progress: Progress | None = None) -> list[Rule]:
    """Without rules that those kept, and those `beside`, replay in three directed steps, through nothing much costlier.

    A search takes these steps itself; what takes more it would not find.
    """
    kept: list[Rule] = []
    known = Rules(beside)
    for i, rule in enumerate(sorted(rules, key=_specificity)):
        if progress and i % 16 == 0:
            progress("replay", i, len(rules))
        if known.steps(rule.source, rule.target) is None:
            kept.append(rule)
            known.add(rule)
    return kept


def _specificity(rule: Rule) -> tuple[int, int, int, str]:
    """Small and with many variables and symbols first; the text decides between equals."""
    sides = (*rule.source, *rule.target)
    operators = sum(not t.is_variable for t in subterms(*sides))
    return (operators, -len(rule.given), -len(all_symbols(*rule.source)), print_rule(rule))


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
