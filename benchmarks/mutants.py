"""Rules made wrong on purpose: one small change on the right-hand side of a rule, or a condition dropped."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from superopt.demands import assuming
from superopt.dim import Dim, symbol
from superopt.errors import RuleError, ShapeError, Undecided
from superopt.operators.declare import CATALOGUE
from superopt.operators.declared import Declared
from superopt.operators.layout import Concat, Transpose
from superopt.operators.picks import Slice
from superopt.operators.symbolic import all_symbols, conditions
from superopt.rules.rule import Rule
from superopt.term import Term, make, replace_all, subterms


def mutants(rule: Rule) -> Iterator[tuple[str, Rule]]:
    """Every rule that is one change away from this one, with what was changed; those that are ill typed left out."""
    for old in subterms(*rule.target):
        for kind, change in _changes(rule, old):
            try:
                with assuming():
                    target = replace_all(rule.target, {old: change()})
                    conditions(*rule.source, *target)
                    made = replace(rule, target=target)
            except (ShapeError, Undecided, RuleError):
                continue
            if target != rule.target and all(
                s.type.rank == t.type.rank for s, t in zip(rule.source, target, strict=True)
            ):
                yield kind, made
    for i in range(len(rule.conditions)):
        yield "condition dropped", replace(rule, conditions=rule.conditions[:i] + rule.conditions[i + 1 :])
    for i in range(len(rule.facts)):
        yield "condition dropped", replace(rule, facts=rule.facts[:i] + rule.facts[i + 1 :])


def _changes(rule: Rule, old: Term) -> Iterator[tuple[str, Callable[[], Term]]]:
    op = old.operator
    for v in rule.given if old.is_variable else ():
        if v is not old and v.type.rank == old.type.rank:
            yield "other variable", partial(_itself, v)
    if not isinstance(op, Declared):
        return
    if op.arity == 2 and not op.commutative:
        yield "operands swapped", partial(make, op, old.inputs[::-1])
    for i in old.inputs:
        if i.type.rank == old.type.rank:
            yield "operator dropped", partial(_itself, i)
    for name, cls in CATALOGUE.items():
        if op.pointwise and cls.pointwise and cls.arity == op.arity and name != op.name:
            yield "other operator", partial(_applied, cls, old)
    if op.arity == 1:
        yield "operator doubled", partial(make, op, (old,))
    yield from ((kind, partial(make, o, old.inputs)) for kind, o in _attributes(rule, op, old.type.rank))


def _itself(term: Term) -> Term:
    return term


def _applied(cls: type[Declared], old: Term) -> Term:
    return make(cls(), old.inputs)  # raises where the class needs attributes


def _attributes(rule: Rule, op: Declared, rank: int) -> Iterator[tuple[str, Declared]]:
    if isinstance(op, Concat | Slice) or op.name == "softmax":
        for axis in range(rank):
            yield "other axis", replace(op, axis=axis)  # type: ignore[type-var]
    if isinstance(op, Transpose):
        for perm in itertools.permutations(range(rank)):
            yield "other permutation", Transpose(perm)
    sizes = op.sizes()
    for i, size in enumerate(sizes):
        others: list[Dim] = [symbol(n) for n in all_symbols(*rule.source)]
        for other in (size + 1, size - 1, 1, 0, *others):
            yield "other size", op.with_sizes([*sizes[:i], other, *sizes[i + 1 :]])
