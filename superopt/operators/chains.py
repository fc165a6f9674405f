"""Operators below each other that are one thing: what a chain of concats joins, and what a chain of reshapes views."""

from __future__ import annotations

from superopt.operators.layout import Reshape
from superopt.term import Term


def joined(term: Term) -> list[Term]:
    """What a chain of concats along one axis joins, in order."""
    parts, left = list[Term](), term
    while left.operator == term.operator:
        left, right = left.inputs
        parts.append(right)
    return [left, *parts[::-1]]


def viewed(term: Term) -> Term:
    """What reshapes give another shape."""
    while isinstance(term.operator, Reshape):
        (term,) = term.inputs
    return term
