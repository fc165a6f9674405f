"""Subterms that two terms share, made variables where they do not matter."""

from __future__ import annotations

from collections.abc import Callable

from superopt.term import Term, replace_all, subterms, variable, variables


def abstracted(source: Term, target: Term, same: Callable[[Term, Term], bool]) -> tuple[Term, Term]:
    """Both terms with the largest subterms that they share made variables, where `same(left, right)` still holds."""
    shared = set(subterms(source)) & set(subterms(target))
    for term in reversed(list(subterms(source))):
        if term in shared and not term.is_variable and term is not source and term is not target:
            hole = variable(f"hole{len(variables(source))}", term.shape)
            left, right = replace_all((source, target), {term: hole})
            if same(left, right):
                return abstracted(left, right, same)
    return source, target
