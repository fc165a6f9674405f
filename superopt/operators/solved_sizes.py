"""Equalities between sizes, solved for symbols: what makes terms well formed, and of one shape."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence

from superopt.dim import Condition, Dim, Expr, Symbol, at_most, floor_div, symbol
from superopt.errors import ShapeError
from superopt.operators.symbolic import conditions, positive_symbols
from superopt.substitution import substitute, substitute_condition, symbols
from superopt.term import Term, variables


def unify(
    open_conditions: Sequence[Condition], keep: Sequence[str] = (), positive: Container[str] = ()
) -> tuple[dict[str, Dim], list[Condition]]:
    """Solve equalities for symbols, those in `keep` last: the values found, and the conditions that remain.

    Factors that all of an equality has, and that are `positive`, are cancelled.

    Raises `ShapeError` where an equality cannot hold.
    """
    values: dict[str, Dim] = {}
    rest = list(open_conditions)
    solved = True
    while solved:
        solved = False
        for condition in rest:
            found = _solve(condition, keep, positive) if condition.relation == "=" else None
            if found is not None:
                values = {n: substitute(d, dict([found])) for n, d in values.items()} | dict([found])
                rest = _reduced(rest, dict([found]))
                solved = True
                break
    return values, rest


def _reduced(open_conditions: Sequence[Condition], values: Mapping[str, Dim]) -> list[Condition]:
    remaining: dict[Condition, None] = {}
    for condition in open_conditions:
        truth = substitute_condition(condition, values)
        if isinstance(truth, Condition):
            remaining[truth] = None
        elif not truth:
            raise ShapeError(f"the sizes contradict each other: {condition}")
    return list(remaining)


def _solve(condition: Condition, keep: Sequence[str], positive: Container[str]) -> tuple[str, Dim] | None:
    """A symbol that the equality determines, with its value: it stands alone in one monomial and nowhere else."""
    difference = _cancelled(condition.left - condition.right, positive)
    assert isinstance(difference, Expr)
    candidates: list[tuple[int, str, Dim]] = []
    for monomial, coefficient in difference.terms:
        if len(monomial) == 1 and isinstance(monomial[0], Symbol) and abs(coefficient) == 1:
            name = monomial[0].name
            value = symbol(name) - difference * coefficient
            if name not in symbols(value):
                candidates.append((keep.index(name) if name in keep else -1, name, value))
    if not candidates:
        return None
    _, name, value = _last(candidates)
    return name, value


def _cancelled(dim: Dim, positive: Container[str]) -> Dim:
    """A size that is to be 0 without the positive factors that all of it has, the largest integer among them."""
    if isinstance(dim, Expr):
        dim = floor_div(dim, math.gcd(*(c for _, c in dim.terms)))
    for atom in min((m for m, _ in dim.terms), key=len) if isinstance(dim, Expr) else ():
        is_positive = isinstance(atom, Symbol) and atom.name in positive
        if is_positive and isinstance(dim, Expr) and len(dim.terms) > 1 and all(atom in m for m, _ in dim.terms):
            dim = floor_div(dim, Expr((((atom,), 1),)))
    return dim


def _last(candidates: list[tuple[int, str, Dim]]) -> tuple[int, str, Dim]:
    """Of the symbols an equality could be solved for: one not to keep, else the last of those to keep."""
    free = [c for c in candidates if c[0] < 0]
    return max(free, key=lambda c: c[1]) if free else max(candidates, key=lambda c: c[0])


def fitting(
    roots: Sequence[Term], open_conditions: Sequence[Condition], names: Sequence[str]
) -> tuple[dict[str, Dim], list[Condition]]:
    """`unify` for all that makes the terms well formed, with sizes of at least 1, under further conditions."""
    positive = [c for v in variables(*roots) for d in v.shape if isinstance(c := at_most(1, d), Condition)]
    return unify([*conditions(*roots), *positive, *open_conditions], names, positive_symbols(*roots))
