"""Terms of a table as patterns, matched and built in columns: a pattern is tried on many applications at once.

A pattern's variables stand for terms of any types. What it makes of other types than its own may be ill typed, and may
have another value than an equation says: who asks has to look.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from superopt.arithmetic.carrier import Array
from superopt.enumerate.rows import Rows
from superopt.enumerate.table import Table, filled
from superopt.errors import ShapeError
from superopt.term import Term


@dataclass(frozen=True)
class Node:
    """An operator of a kind in a pattern."""

    kind: int
    inputs: tuple[Pattern, ...]


Pattern: TypeAlias = "Node | int"
"""Operators over leaves, which are the numbers of a table's."""

Bound = dict[int, Array]
"""The terms that a pattern's variables stand for, row by row."""


def pattern_of(table: Table, term: int) -> Pattern:
    """A term of a table down to its leaves."""
    if table.app[term] < 0:
        return term
    return applied(table, int(table.app[term]), int(table.left[term]), int(table.right[term]))


def applied(table: Table, app: int, left: int, right: int) -> Node:
    """An application to terms of a table, down to its leaves."""
    a = table.types.applications[app]
    return Node(a.kind, tuple(pattern_of(table, i) for i in (left, right)[: len(a.inputs)]))


def either_way(table: Table, pattern: Pattern) -> list[Pattern]:
    """The pattern with the inputs of commutative operators in all orders."""
    return list(dict.fromkeys(_orders(table, pattern)))


def _orders(table: Table, pattern: Pattern) -> Iterator[Pattern]:
    if isinstance(pattern, int):
        yield pattern
        return
    for inputs in itertools.product(*(list(_orders(table, i)) for i in pattern.inputs)):
        yield Node(pattern.kind, inputs)
        if table.types.kinds[pattern.kind].commutative:
            yield Node(pattern.kind, inputs[::-1])


def match(table: Table, node: Node, left: Array, right: Array) -> tuple[Array, Bound]:
    """The rows at which applications of the node's kind to terms match it, and what its variables stand for there."""
    bound: Bound = {}
    rows = np.arange(len(left))
    pending: list[tuple[Pattern, Array]] = list(zip(node.inputs, (left, right), strict=False))
    while pending and len(rows):
        wanted, terms = pending.pop()
        below: list[tuple[Pattern, Array]] = []
        if isinstance(wanted, Node):
            fits = table.kind[terms] == wanted.kind
            below = list(zip(wanted.inputs, (table.left[terms], table.right[terms]), strict=False))
        elif not table.leaves[wanted].is_variable:
            fits = terms == wanted
        elif wanted in bound:
            fits = terms == bound[wanted]
        else:
            bound[wanted] = terms
            continue
        pending, bound = [(t, x[fits]) for t, x in pending], {v: x[fits] for v, x in bound.items()}
        pending += [(t, x[fits]) for t, x in below]
        rows = rows[fits]
    return rows, bound


def applications(table: Table, node: Node, bound: Bound, count: int) -> Rows:
    """The applications that a pattern makes of what its variables stand for; −1 where it makes none of what was met."""
    inputs = [instantiated(table, i, bound, count) for i in node.inputs]
    two = len(inputs) == 2
    left, right = inputs[0], inputs[1] if two else np.full(count, -1)
    known = (left >= 0) & ((right >= 0) | (not two))
    left, right = np.where(known, left, 0), np.where(known, right, 0 if two else -1)
    types = [table.type[i] for i in (left, right)[: len(inputs)]]
    app = np.where(known, table.types.fitting(node.kind, *types), -1)
    return table.swapped(Rows(app, left, right))


def instantiated(table: Table, pattern: Pattern, bound: Bound, count: int) -> Array:
    """The terms that have the values of a pattern, row by row; −1 where one was not met."""
    if isinstance(pattern, int):
        known = pattern if not table.leaves[pattern].is_variable else -1
        return bound[pattern] if pattern in bound else np.full(count, known)
    rows = applications(table, pattern, bound, count)
    return np.where(rows.app >= 0, table.find(rows), -1)


def as_term(table: Table, pattern: Pattern, leaves: Mapping[int, Term]) -> Term:
    """A pattern as a term over symbols, with terms in place of leaves. Raises `ShapeError` where they do not fit."""
    if isinstance(pattern, int):
        return leaves.get(pattern, table.leaves[pattern])
    inputs = [as_term(table, i, leaves) for i in pattern.inputs]
    types = [np.array([table.types.number(i.shape)]) for i in inputs]
    (app,) = table.types.fitting(pattern.kind, *types).tolist()
    if app < 0:
        raise ShapeError(f"{table.types.kinds[pattern.kind].pattern} does not fit {', '.join(map(str, inputs))}")
    a = table.types.applications[app]
    return filled(a.term, a.holes, inputs)
