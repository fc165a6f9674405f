"""Unification of terms (Robinson 1965): what their variables have to be for two terms to be one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from superopt.dim import Dim
from superopt.operators.declared import Declared
from superopt.rules.match import same_head
from superopt.term import Term, replace_all, variables

Substitution: TypeAlias = dict[Term, Term]
"""Terms for variables, which may have variables that it has terms for."""

Equal: TypeAlias = list[tuple[Dim, Dim]]
"""Sizes that have to be equal."""


def unified(a: Term, b: Term, same: Substitution, sizes: Equal) -> Iterator[tuple[Substitution, Equal]]:
    """All ways in which two terms are one, beside what is so far: what stands for variables, and the sizes that have to
    be equal. Inputs of commutative operators are tried in both orders.
    """
    a, b = resolved(a, same), resolved(b, same)
    if a is b:
        yield same, sizes
    elif a.is_variable or b.is_variable:
        var, term = (a, b) if a.is_variable else (b, a)
        if var.type.rank == term.type.rank and not _occurs(var, term, same):
            yield {**same, var: term}, [*sizes, *zip(var.shape, term.shape, strict=True)]
    elif same_head(a, b):
        assert isinstance(a.operator, Declared)
        assert isinstance(b.operator, Declared)
        found = [(same, [*sizes, *zip(a.operator.sizes(), b.operator.sizes(), strict=True)])]
        for inputs in [b.inputs, b.inputs[::-1]] if a.operator.commutative else [b.inputs]:
            ways = found
            for x, y in zip(a.inputs, inputs, strict=True):
                ways = [way for s, z in ways for way in unified(x, y, s, z)]
            yield from ways


def resolved(term: Term, same: Substitution) -> Term:
    """What stands for a variable in the end; another term itself."""
    while term in same:
        term = same[term]
    return term


def _occurs(var: Term, term: Term, same: Substitution) -> bool:
    return any(v is var or (v in same and _occurs(var, same[v], same)) for v in variables(term))


def applied(terms: tuple[Term, ...], same: Substitution) -> tuple[Term, ...]:
    """Terms with what stands for their variables, and for the variables of that."""
    while not same.keys().isdisjoint(variables(*terms)):
        terms = replace_all(terms, same)
    return terms
