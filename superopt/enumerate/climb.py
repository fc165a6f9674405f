"""What pairs of equal terms come to: proved as generally as they can be, or under a condition; refuted, or unknown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from superopt.enumerate.directed import Pair
from superopt.enumerate.generality import LADDER, Generality
from superopt.enumerate.generalize import generalized
from superopt.enumerate.grow import Progress
from superopt.enumerate.judges import Judges, read_rule
from superopt.rules.format import print_rule
from superopt.rules.match import commuted
from superopt.rules.ranks import at_any_rank
from superopt.rules.rule import Rule
from superopt.rules.work import operators
from superopt.term import Term
from superopt.verify.elements import is_elementwise

REFUTED = "refuted"

Open: TypeAlias = "dict[Pair, str]"
"""Pairs that did not prove, and why: `REFUTED`, or what is not known."""

MOST_LEARNED = 200
"""For how many equations a condition is looked for, at most: that takes two seconds each."""

WITNESS, CONDITION = "; against\n", "; under a condition\n"
"""What stands before a rule's text where a witness against it is asked for, and no proof of it; or a condition."""


def climb(
    pairs: list[Pair],
    prove_all: Judges,
    counts: dict[str, int],
    progress: Progress | None,
) -> tuple[list[Rule], Open]:
    """Verify each pair in its most general form, what fails in the next, and so on; each form once."""
    found: list[Rule] = []
    last: dict[Pair, str] = {}
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
    counts["proved"] = len(found)
    return found, why_not


def refute(open_: Open, refute_all: Judges, progress: Progress | None) -> Open:
    """What pairs come to that did not prove: refuted are those for which, in their most general form, there is a
    witness.
    """
    forms = _most_general(pair for pair, why in open_.items() if why != REFUTED)
    texts = [f"{WITNESS}{text}" for text in forms]
    found = dict(open_)
    for i, (pairs, (witness, _)) in enumerate(zip(forms.values(), refute_all(texts), strict=True)):
        if progress and i % 8 == 0:
            progress("refute", i, len(texts))
        if witness is not None:
            found |= dict.fromkeys(pairs, REFUTED)
    return found


def learn_conditions(
    open_: Open, learn_all: Judges, counts: dict[str, int], progress: Progress | None
) -> tuple[list[Rule], Open]:
    """The rules that prove under a condition that was learned, of pairs that did not prove; and the other pairs.

    Of very many, those of the fewest operators are looked at; point-wise ones never.
    """
    smallest = sorted((p for p in open_ if not is_elementwise(*p)), key=operators)
    forms, found, left = _most_general(smallest, most=MOST_LEARNED), list[Rule](), dict(open_)
    texts = [f"{CONDITION}{text}" for text in forms]
    for i, (pairs, (text, _)) in enumerate(zip(forms.values(), learn_all(texts), strict=True)):
        if progress and i % 2 == 0:
            progress("learn conditions", i, len(forms))
        if text is not None:
            found.append(read_rule(text))
            left = {pair: why for pair, why in left.items() if pair not in pairs}
    counts["proved under a condition"] = len(found)
    counts["refuted"] = sum(why == REFUTED for why in left.values())
    counts["unknown"] = len(left) - counts["refuted"]
    return found, left


def _most_general(pairs: Iterable[Pair], most: int | None = None) -> dict[str, list[Pair]]:
    """The most general forms that pairs can be stated in, as texts, each with the pairs that are stated so; at most so
    many, the first.
    """
    forms: dict[str, list[Pair]] = {}
    for pair in pairs:
        if len(forms) == most:
            break
        rule = generalized(*pair, LADDER[0])
        if rule is not None:
            forms.setdefault(print_rule(rule), []).append(pair)
    return forms


def prove_each(
    rules: Iterable[Rule], prove_all: Judges, counts: dict[str, int], stage: str, progress: Progress | None
) -> list[Rule]:
    """The rules that prove as they are stated."""
    texts = list(dict.fromkeys(map(print_rule, rules)))
    found = []
    for i, (text, _) in enumerate(prove_all(texts)):
        if progress and i % 8 == 0:
            progress(f"prove {stage}", i, len(texts))
        found += [read_rule(text)] if text is not None else []
    counts[stage] = len(texts)
    counts[f"{stage}, proved"] = len(found)
    return found


Forms: TypeAlias = dict[tuple[Term, ...], tuple[Rule, list[Pair]]]


def _forms(
    pairs: list[Pair], generality: Generality, stage: str, progress: Progress | None
) -> tuple[Forms, list[Pair]]:
    """The rules that pairs generalize to, with the pairs that do; and the pairs that cannot be stated so."""
    forms: Forms = {}
    without: list[Pair] = []
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
