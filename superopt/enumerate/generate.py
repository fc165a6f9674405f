"""The whole way from a family to proved rules: grow, pair, prune, generalize, verify, prune again."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

from superopt.arithmetic import EXACT
from superopt.enumerate.checkpoint import Checkpoint
from superopt.enumerate.equations import equations
from superopt.enumerate.family import SIZES, Family
from superopt.enumerate.generalize import LADDER, Generality, abstracted, generalized
from superopt.enumerate.grow import Progress
from superopt.enumerate.judges import Judges, first_proved, first_refuted, judges, read_rule
from superopt.enumerate.prune import MUCH, macros, named, prune_instances
from superopt.enumerate.tuples import of_two_outputs
from superopt.evaluate import evaluate, sample
from superopt.operators.instances import resize
from superopt.operators.reader import term_text
from superopt.rules.derive import Rules
from superopt.rules.format import print_rule
from superopt.rules.match import commuted
from superopt.rules.ranks import at_any_rank
from superopt.rules.rule import Rule
from superopt.term import Term, replace_all, subterms, variable, variables
from superopt.verify.elements import is_elementwise

Pair: TypeAlias = "tuple[Term, Term]"
"""Two terms that have one value."""

REFUTED = "refuted"

WITNESS = "; against\n"
"""What stands before a rule's text where a witness against it is asked for, and no proof of it."""


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
    with judges(workers, first_proved) as run, judges(workers, first_refuted) as refuting:
        prove_all = partial(checkpoint.verdicts, run)
        found, open_ = _climb(pairs, prove_all, counts, progress)
        unknown = _refute(open_, partial(checkpoint.verdicts, refuting), counts, progress)
        found += _of_two_outputs(found, prove_all, counts, progress)
        found = prune_instances(found, progress)
        counts["instances of no other rule"] = len(found)
        known = [*beside, *macros(found, beside, progress)]
        further = distinct(_not_replayed(found_equal.others, Rules(known), progress), _named(family))
        counts["not replayed, of all equations"] = len(further)
        found += _climb(further, prove_all, {}, progress)[0]
    found = prune_instances(found, progress)
    rules = named(macros(found, beside, progress), beside)
    counts["rules"] = len(rules)
    return Generated(rules, counts, unknown, time.monotonic() - start)


def _not_replayed(pairs: list[Pair], known: Rules, progress: Progress | None) -> list[Pair]:
    """The equations, directed, that the rules do not replay in three steps.

    Point-wise ones are not looked at: they are by far the most, and hardest to replay.
    """
    found: list[Pair] = []
    for i, pair in enumerate(pairs):
        if progress and i % 64 == 0:
            progress("replay all equations", i, len(pairs))
        if not is_elementwise(*pair) and any(known.steps((a,), (b,), much=MUCH) is None for a, b in _directions(*pair)):
            shared = _directions(*abstracted(*pair, _same_value))
            found += [(a, b) for a, b in shared if known.steps((a,), (b,), much=MUCH) is None]
    return found


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
    prove_all: Judges,
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
                found.append(read_rule(text))
            else:
                failed += forms[new[i]][1]
                last |= dict.fromkeys(forms[new[i]][1], why or REFUTED)
        counts[f"forms tried, step {number}"] = len(new)
        pairs = failed
    why_not = {p: last.get(p, "it cannot be stated over symbols") for p in pairs}
    open_ = {p: why for p, why in why_not.items() if why != REFUTED}
    counts |= {"proved": len(found), "refuted": len(why_not) - len(open_)}
    return found, open_


def _refute(open_: dict[Pair, str], refute_all: Judges, counts: dict[str, int], progress: Progress | None) -> list[str]:
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
    rules: list[Rule], prove_all: Judges, counts: dict[str, int], progress: Progress | None
) -> list[Rule]:
    """The rules of two outputs that prove."""
    texts = list(dict.fromkeys(print_rule(rule) for rule in of_two_outputs(rules)))
    found = []
    for i, (text, _) in enumerate(prove_all(texts)):
        if progress and i % 8 == 0:
            progress("prove two outputs", i, len(texts))
        found += [read_rule(text)] if text is not None else []
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
        stated = generalized(*pair, generality)
        if stated is None:
            without.append(pair)
        else:
            rule = at_any_rank(stated)
            key = tuple(map(commuted, (*rule.source, *rule.target)))
            forms.setdefault(key, (rule, []))[1].append(pair)
    return forms, without
