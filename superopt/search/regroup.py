"""Sums of several terms, and products: any two of them may meet.

A rewrite of a sum sees two terms that are added to each other, and sums are regrouped by a rule that turns one pair
around at a time. Each order costs the same, so a search would lose its patience among them: a block of RepVGG adds two
convolutions, their biases, and its input scaled and shifted. So what may be added to each other first is looked at for
all pairs, and a sum is regrouped at once where a pair becomes less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, permutations
from typing import TypeAlias

from superopt.operators.declare import Declared
from superopt.rules.match import commuted
from superopt.rules.rule import Rule, of_any_rank
from superopt.search.rewrites import ByRule, Rewrite
from superopt.term import Operator, Term, make, subterms

MOST = 8
"""A sum of more terms is looked at by pairs that stand next to each other only."""

Regrouping: TypeAlias = Mapping[str, Rewrite]
"""By the name of an operator, the rule that says that its terms may be grouped in any way."""


def regrouping(rewrites: Sequence[Rewrite]) -> Regrouping:
    """The operators whose terms may be grouped in any way, by what rewrites say."""
    rules = [r for r in rewrites if isinstance(r, ByRule) and len(r.heads) == 1 and r.depth == 2]
    return {r.heads[0]: r for r in reversed(rules) if _says_so(r.rule)}


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
    parts = parts_of(source)
    if len(parts) != 3 or len(set(parts)) != 3 or not all(p.is_variable for p in parts):
        return False
    groups = {commuted(_joined(op, order)) for order in permutations(parts)}
    return commuted(source) != commuted(target) and commuted(target) in groups


def parts_of(term: Term) -> list[Term]:
    """What is added up, or multiplied, by a term and those below it that do the same."""
    found = list[Term]()
    for i in term.inputs:
        found.extend(parts_of(i) if i.operator == term.operator and not i.constant else [i])
    return found


def regrouped(term: Term, saved: Callable[[Term], float], rules: Regrouping) -> Iterator[tuple[Rewrite, Term, float]]:
    """A term with two of its parts brought together that save something so, and what: those that are not yet."""
    rule = rules.get(term.operator.name)
    if rule is None or term.constant or not any(i.operator == term.operator for i in term.inputs):
        return
    parts = parts_of(term)
    if len(parts) > MOST:
        return
    together = {frozenset(pair) for pair in _pairs(term)}
    for i, j in combinations(range(len(parts)), 2):
        if frozenset((parts[i], parts[j])) in together:
            continue
        pair = make(term.operator, (parts[i], parts[j]))
        saves = saved(pair)
        if saves:  # what follows the first of the two, a bias perhaps, stays next to it
            yield rule, _joined(term.operator, [*parts[:i], pair, *parts[i + 1 : j], *parts[j + 1 :]]), saves


def _pairs(term: Term) -> Iterator[tuple[Term, ...]]:
    """The inputs of a term, and of those below it that do the same."""
    yield term.inputs
    for i in term.inputs:
        if i.operator == term.operator:
            yield from _pairs(i)


def _joined(op: Operator, parts: Sequence[Term]) -> Term:
    made = parts[0]
    for part in parts[1:]:
        made = make(op, (made, part))
    return made
