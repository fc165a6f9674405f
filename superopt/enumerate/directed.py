"""Equations as rewrites: which way they may be read, each once whatever its variables are called."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from superopt.term import Term, replace_all, subterms, variable, variables

Pair: TypeAlias = "tuple[Term, Term]"
"""Two terms that have one value."""


def distinct(pairs: list[Pair], given: Sequence[Term]) -> list[Pair]:
    """Each pair once, in the order found: variables of one type are named by first use, so renamings are one."""
    return list(dict.fromkeys(_renamed(pair, given) for pair in pairs))


def _renamed(pair: Pair, given: Sequence[Term]) -> Pair:
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


def directions(a: Term, b: Term) -> Iterator[Pair]:
    """An equation as rewrites: from a term that binds all variables, and not to one that contains it."""
    for source, target in ((a, b), (b, a)):
        bound = set(variables(source))
        if not source.is_variable and set(variables(target)) <= bound and source not in set(subterms(target)):
            yield source, target
