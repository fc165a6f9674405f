"""Sums of several terms, some of them taken away, and products: any two of them may meet.

A rewrite of a sum sees two terms that are added to each other, and sums are regrouped by a rule that turns one pair
around at a time. Each order costs the same, so a search would lose its patience among them: a block of RepVGG adds two
convolutions, their biases, and its input scaled and shifted. So what may be added to each other first is looked at for
all pairs, and a sum is regrouped at once where a pair becomes less.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from itertools import combinations, permutations
from typing import TypeAlias

from superopt.operators.declared import Declared
from superopt.operators.differences import Sub
from superopt.operators.pointwise import Add
from superopt.rules.match import commuted
from superopt.rules.rule import Rule, of_any_rank
from superopt.search.rewriting.rewrites import ByRule, Rewrite
from superopt.term import Operator, Term, make, subterms

MOST = 8
"""A sum of more terms is looked at by pairs that stand next to each other only."""

Regrouping: TypeAlias = Mapping[str, Rewrite]
"""By the name of an operator, the rule that says that its terms may be grouped in any way; by that of `sub`, one of the
rules that say so of sums and differences together.
"""

Part: TypeAlias = "tuple[Term, bool]"
"""What is added up, or multiplied; and whether it is taken away."""

DIFFERENCES = {("add", "sub"), ("sub", "add"), ("sub", "sub")}
"""Which operators, the second below the first, rules are about where sums and differences may be grouped in any way."""


def regrouping(rewrites: Sequence[Rewrite]) -> Regrouping:
    """The operators whose terms may be grouped in any way, by what rewrites say."""
    rules = [r for r in rewrites if isinstance(r, ByRule) and len(r.heads) == 1 and r.depth == 2]
    found: dict[str, Rewrite] = {r.heads[0]: r for r in reversed(rules) if _says_so(r.rule)}
    of_differences = [r for r in rules if _says_so_of_differences(r.rule)]
    told = {(r.heads[0], i.operator.name) for r in of_differences for i in r.patterns[0].inputs if i.inputs}
    if "add" in found and told >= DIFFERENCES:
        found["sub"] = next(r for r in of_differences if r.heads == ("sub",))
    return found


def _says_so(rule: Rule) -> bool:
    """Whether a rule is `(x + y) + z = x + (y + z)` for all tensors of any rank, and for some operator whose inputs may
    be exchanged.
    """
    (source,), (target,) = rule.source, rule.target
    op = source.operator
    if not (isinstance(op, Declared) and op.commutative) or rule.facts or rule.conditions:
        return False
    if not of_any_rank(*subterms(source)):
        return False
    parts = parts_of(source, differences=False)
    if len(parts) != 3 or len(set(parts)) != 3 or not all(p.is_variable for p, _ in parts):
        return False
    groups = {commuted(_joined(op, order)) for order in permutations(parts)}
    return commuted(source) != commuted(target) and commuted(target) in groups


def _says_so_of_differences(rule: Rule) -> bool:
    """Whether a rule groups three tensors of any rank otherwise that are added to each other or taken away."""
    (source,), (target,) = rule.source, rule.target
    inner = [t.operator for t in (*subterms(source), *subterms(target)) if not t.is_variable]
    if rule.facts or rule.conditions or not of_any_rank(*subterms(source)):
        return False
    if not all(isinstance(op, Add | Sub) for op in inner) or not any(isinstance(op, Sub) for op in inner):
        return False
    before, after = parts_of(source), parts_of(target)
    return len({p for p, _ in before}) == 3 and len(before) == 3 and sorted(before, key=repr) == sorted(after, key=repr)


def parts_of(term: Term, differences: bool = True, whole: Container[Term] = ()) -> list[Part]:
    """What is added up, or multiplied, by a term and those below it that do the same, or take away, but for some that
    stay `whole`.
    """
    found = list[Part]()
    for place, i in enumerate(term.inputs):
        taken = isinstance(term.operator, Sub) and place == 1
        deeper = _goes_on(term, i, differences, whole) and not i.constant
        found.extend((p, away != taken) for p, away in (parts_of(i, differences, whole) if deeper else [(i, False)]))
    return found


def _goes_on(term: Term, below: Term, differences: bool, whole: Container[Term] = ()) -> bool:
    """Whether what is below adds to the same sum, or product."""
    both = differences and isinstance(term.operator, Add | Sub) and isinstance(below.operator, Add | Sub)
    alike = both or (below.operator == term.operator and not isinstance(term.operator, Sub))
    return alike and below not in whole


def _shared(term: Term) -> frozenset[Term]:
    """What several terms below one take: taken apart for one of them, it is computed for the others all the same. Who
    takes it beside a term is not looked at, since what replaces a term does not depend on what stands around it.
    """
    seen, shared = set[Term](), set[Term]()
    for t in subterms(term):
        for i in {i for i in t.inputs if i.inputs}:
            (shared if i in seen else seen).add(i)
    return frozenset(shared)


def regrouped(term: Term, saved: Callable[[Term], float], rules: Regrouping) -> Iterator[tuple[Rewrite, Term, float]]:
    """A term with two of its parts brought together that save something so, and what: those that are not yet."""
    op, differences = term.operator, "sub" in rules
    if op.name not in rules or term.constant or not any(_goes_on(term, i, differences) for i in term.inputs):
        return
    whole = _shared(term)
    parts = parts_of(term, differences, whole)
    if not 2 < len(parts) <= MOST:
        return
    rule = rules["sub" if any(away for _, away in parts) else op.name]
    op = Add() if isinstance(op, Sub) else op
    together = {frozenset(pair) for pair in _pairs(term, differences, whole)}
    for i, j in combinations(range(len(parts)), 2):
        (one, away), (other, other_away) = sorted((parts[i], parts[j]), key=lambda part: part[1])
        if frozenset((one, other)) in together:
            continue
        pair = make(op if away == other_away else Sub(), (one, other))
        saves = saved(pair)
        if saves:  # what follows the first of the two, a bias perhaps, stays next to it
            yield rule, _joined(op, [*parts[:i], (pair, away), *parts[i + 1 : j], *parts[j + 1 :]]), saves


def _pairs(term: Term, differences: bool, whole: Container[Term]) -> Iterator[tuple[Term, ...]]:
    """The inputs of a term, and of those below it that go on with it."""
    yield term.inputs
    for i in term.inputs:
        if _goes_on(term, i, differences, whole):
            yield from _pairs(i, differences, whole)


def _joined(op: Operator, parts: Sequence[Part]) -> Term:
    """Parts put together, what is taken away last: there is always one that is not."""
    first, *others = sorted(parts, key=lambda part: part[1])
    made = first[0]
    for part, away in others:
        made = make(Sub() if away else op, (made, part))
    return made
