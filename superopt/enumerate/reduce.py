"""Which equations found say nothing new: those whose larger side another equation already rewrites to a smaller term.

Larger terms are made of terms that stand for their values, so only at its root can one be rewritten. Where what it is
rewritten to has its value and comes before it, in an order that cannot go down for ever, the equation follows from the
others by induction (Knuth and Bendix, 1970): what is not reduced is a set from which all equations met follow. Terms
are rewritten in columns: an equation is tried on all terms of one kind at once, whatever their types.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from superopt.arithmetic import Array
from superopt.enumerate.table import Found, Table


@dataclass(frozen=True)
class Node:
    """An operator of a kind in a pattern."""

    kind: int
    inputs: tuple[Tree, ...]


Tree: TypeAlias = "Node | int"
"""A pattern over terms of a table; leaves are their numbers."""

Bound = dict[int, Array]
"""The terms that a pattern's variables stand for, row by row."""


@dataclass(frozen=True)
class Equation:
    """An application to terms of a table, and a tree over them of equal value."""

    app: int
    left: int
    right: int
    equal: Tree


class Rewrite:
    """An equation from its application to what is equal to it."""

    def __init__(self, table: Table, equation: Equation) -> None:
        self.equation = equation
        self.source = applied(table, equation.app, equation.left, equation.right)
        self.target = equation.equal
        self.table = table

    @cached_property
    def sources(self) -> list[Node]:
        """The source with the inputs of commutative operators either way round."""
        found = dict.fromkeys(_orders(self.table, self.source))
        return [node for node in found if isinstance(node, Node)]

    @cached_property
    def variables(self) -> frozenset[int]:
        """The leaves of the source that are variables."""
        return leaves(self.table, self.source)

    def reduces(self, rows: Rows, last: bool) -> Array:
        """Which of the applications it rewrites to something that has their value and comes before them."""
        found = np.zeros(len(rows), bool)
        for source in self.sources:
            place = np.flatnonzero(~found)
            place, bound = _match(self.table, source, rows.left[place], rows.right[place], place)
            if len(place):
                found[place] |= self._smaller(bound, rows.at(place), last)
        return found

    def _smaller(self, bound: Bound, rows: Rows, last: bool) -> Array:
        table = self.table
        if isinstance(self.target, int):
            return instantiated(table, self.target, bound, len(rows)) == rows.equal
        new = applications(table, self.target, bound, len(rows))
        ops, before = table.operators(new), table.operators(rows)
        comes_first = _before(new, rows) if not last else _before_in_order(table, new, rows, ops == before)
        smaller = (new.app >= 0) & ((ops < before) | ((ops == before) & comes_first))
        known = np.where(smaller, table.find(new.app, new.left, new.right), -1)
        same = smaller & (known >= 0) & (known == rows.equal)
        unmet = np.flatnonzero(smaller & (known < 0))
        if last and len(unmet):
            same[unmet] = same_value(table, new.at(unmet), rows.at(unmet))
        return same


@dataclass
class Rows:
    """Applications in columns, with the terms that stand for their values (−1 where there is none)."""

    app: Array
    left: Array
    right: Array
    equal: Array
    prints: Array

    def __len__(self) -> int:
        return len(self.app)

    def at(self, rows: Array) -> Rows:
        """Some of them."""
        return Rows(self.app[rows], self.left[rows], self.right[rows], self.equal[rows], self.prints[:, rows])


def _before(one: Rows, other: Rows) -> Array:
    """Which applications come before others, row by row."""
    left = (one.left < other.left) | ((one.left == other.left) & (one.right < other.right))
    return (one.app < other.app) | ((one.app == other.app) & left)


def _before_in_order(table: Table, new: Rows, rows: Rows, among: Array) -> Array:
    """Which applications, renamed to use their variables in order, come before others that do, row by row."""
    found = np.zeros(len(new), bool)
    for swapped in (False, True):
        mine = np.flatnonzero(among & (new.app >= 0) & ~found & (table.commutative[new.app] | (not swapped)))
        if not len(mine):
            continue
        some = new.at(mine)
        uses = table.uses_of(some, swapped)
        for order in np.unique(uses):
            group = np.flatnonzero(uses == order)
            terms = table.renamed(table.first_use.in_order(int(order), len(table.leaves)))
            left, right = terms[some.left[group]], some.right[group]
            two = right >= 0
            right = np.where(two, terms[right], -1)
            commutes = table.commutative[some.app[group]] & (left > right)
            a, b = np.where(commutes, right, left), np.where(commutes, left, right)
            one = Rows(some.app[group], a, b, some.equal[group], some.prints[:, group])
            found[mine[group]] = _before(one, rows.at(mine[group])) & (left >= 0) & (~two | (right >= 0))
    return found


def values_of(table: Table, rows: Rows) -> Array:
    """The fingerprints of applications."""
    prints = np.empty((table.lines, len(rows)), np.uint64)
    for app in np.unique(rows.app):
        mine = np.flatnonzero(rows.app == app)
        values = table.evaluated(int(app), rows.left[mine], rows.right[mine])
        prints[:, mine] = table.prints_of(table.applications[app].result, values)
    return prints


def same_value(table: Table, new: Rows, old: Rows) -> Array:
    """Which applications have the values of others in some carrier, row by row."""
    count = len(table.carriers)
    return np.asarray((values_of(table, new)[:count] == old.prints[:count]).any(axis=0))


def canonical(table: Table, rows: Rows | Found) -> Array:
    """Which applications use their variables in order, if need be with the inputs of a commutative one swapped."""
    found = np.zeros(len(rows), bool)
    one = rows.right < 0
    found[one] = table.first_use.canonical(table.uses[rows.left[one]])
    a, b = table.uses[rows.left[~one]], table.uses[rows.right[~one]]
    commutes = table.commutative[rows.app[~one]]
    either = table.first_use.canonical(table.first_use.combined(a, b))
    either[commutes] |= table.first_use.canonical(table.first_use.combined(b[commutes], a[commutes]))
    found[~one] = either
    return found


def tree(table: Table, term: int) -> Tree:
    """A term of a table down to its leaves."""
    if table.app[term] < 0:
        return term
    return applied(table, int(table.app[term]), int(table.left[term]), int(table.right[term]))


def applied(table: Table, app: int, left: int, right: int) -> Node:
    """An application to terms of a table, down to its leaves."""
    a = table.applications[app]
    return Node(a.kind, tuple(tree(table, i) for i in (left, right)[: len(a.inputs)]))


def leaves(table: Table, node: Tree) -> frozenset[int]:
    """The variables of a pattern."""
    if isinstance(node, int):
        return frozenset([node] if table.leaves[node].is_variable else [])
    return frozenset().union(*(leaves(table, i) for i in node.inputs))


def _orders(table: Table, node: Tree) -> Iterator[Tree]:
    if isinstance(node, int):
        yield node
        return
    for inputs in itertools.product(*(list(_orders(table, i)) for i in node.inputs)):
        yield Node(node.kind, inputs)
        if table.kinds[node.kind].commutative:
            yield Node(node.kind, inputs[::-1])


def _match(table: Table, node: Node, left: Array, right: Array, rows: Array) -> tuple[Array, Bound]:
    """The rows, of those given, at which applications to terms match a pattern below its root, and what it binds."""
    bound: Bound = {}
    pending: list[tuple[Tree, Array]] = list(zip(node.inputs, (left, right), strict=False))
    while pending and len(rows):
        wanted, terms = pending.pop()
        below: list[tuple[Tree, Array]] = []
        if isinstance(wanted, Node):
            fits = table.kind[terms] == wanted.kind
            below = list(zip(wanted.inputs, (table.left[terms], table.right[terms]), strict=False))
        elif not table.leaves[wanted].is_variable:
            fits = terms == wanted
        elif wanted in bound:
            fits = terms == bound[wanted]
        else:
            fits = np.ones(len(rows), bool)
            bound[wanted] = terms
        if not fits.all():
            pending, bound = [(t, x[fits]) for t, x in pending], {v: x[fits] for v, x in bound.items()}
            below, rows = [(t, x[fits]) for t, x in below], rows[fits]
        pending += below
    return rows, bound


def applications(table: Table, node: Node, bound: Bound, count: int) -> Rows:
    """The applications that a pattern makes of what its variables stand for; −1 where one does not fit."""
    inputs = [instantiated(table, i, bound, count) for i in node.inputs]
    left, right = inputs[0], inputs[1] if len(inputs) == 2 else np.full(count, -1)
    known = (left >= 0) & ((right >= 0) | (len(inputs) == 1))
    left, right = np.where(known, left, 0), np.where(known, right, -1 if len(inputs) == 1 else 0)
    app = np.where(known, table.fitting(node.kind, left, right), -1)
    swap = table.commutative[app] & (app >= 0) & (left > right)
    left, right = np.where(swap, right, left), np.where(swap, left, right)
    none = np.empty((0, count), np.uint64)
    return Rows(app, left, right, np.full(count, -1), none)


def instantiated(table: Table, node: Tree, bound: Bound, count: int) -> Array:
    """The terms that have the values of a pattern, row by row; −1 where one was not met."""
    if isinstance(node, int):
        return bound[node] if node in bound else np.full(count, node if not table.leaves[node].is_variable else -1)
    new = applications(table, node, bound, count)
    return np.where(new.app >= 0, table.find(new.app, new.left, new.right), -1)


def reduced(table: Table, rows: Rows, rewrites: Sequence[Rewrite], last: bool) -> Array:
    """Which equations some rewrite makes superfluous."""
    kinds = np.array([a.kind for a in table.applications], np.int32)[rows.app]
    order = np.argsort(kinds, kind="stable")
    found = np.zeros(len(rows), bool)
    for rewrite in rewrites:
        start, stop = np.searchsorted(kinds, [rewrite.source.kind, rewrite.source.kind + 1], sorter=order)
        mine = order[start:stop]
        mine = mine[~found[mine]]
        if len(mine):
            found[mine] = rewrite.reduces(rows.at(mine), last)
    return found


Stated = Callable[["Rows", int], Equation]
"""What is stated of a row: the equation of its application and what is equal to it."""


def as_kept(table: Table) -> Stated:
    """That an application has the value of the term that stands for it."""

    def stated(rows: Rows, i: int) -> Equation:
        return Equation(int(rows.app[i]), int(rows.left[i]), int(rows.right[i]), tree(table, int(rows.equal[i])))

    return stated


def irreducible(
    table: Table, rows: Rows, known: Sequence[Rewrite], last: bool, stated: Stated | None = None
) -> list[Rewrite]:
    """Of the equations of a level those that neither others of it nor the `known` make superfluous.

    Those of more variables come first: others may be they with variables made one.
    """
    rows = rows.at(np.flatnonzero(~reduced(table, rows, known, last)))
    counts = table.variables(rows)
    found: list[Rewrite] = []
    for count in range(int(counts.max(initial=0)), 0, -1):
        new = _distinct(table, rows.at(np.flatnonzero(counts == count)), last, stated or as_kept(table))
        found += new
        later = np.flatnonzero(counts < count)
        later = later[~reduced(table, rows.at(later), new, last)]
        rows, counts = rows.at(later), counts[later]
    return found


def _distinct(table: Table, rows: Rows, last: bool, stated: Stated) -> list[Rewrite]:
    """Equations of as many variables, without those that are others at other types."""
    found: list[Rewrite] = []
    left = np.arange(len(rows))
    while len(left):
        found.append(Rewrite(table, stated(rows, int(left[0]))))
        left = left[1:]
        mine = left[table.kind_of_app[rows.app[left]] == found[-1].source.kind]
        if len(mine):
            gone = mine[found[-1].reduces(rows.at(mine), last)]
            left = np.setdiff1d(left, gone, assume_unique=True)
    return found


def minimal(table: Table, rewrites: Sequence[Rewrite]) -> list[Rewrite]:
    """Without those that others, of more variables, make superfluous: special cases that are smaller come first."""
    rows = Rows(*_columns(table, rewrites))
    counts = np.array([len(r.variables) for r in rewrites], np.int32)
    found = np.zeros(len(rows), bool)
    for count in np.unique(counts)[::-1]:
        mine = [rewrites[i] for i in np.flatnonzero((counts == count) & ~found)]
        fewer = np.flatnonzero((counts < count) & ~found)
        found[fewer] = reduced(table, rows.at(fewer), mine, last=False)
    return [r for r, gone in zip(rewrites, found, strict=True) if not gone]


def _columns(table: Table, rewrites: Sequence[Rewrite]) -> Iterator[Array]:
    equations = [r.equation for r in rewrites]
    for name in ("app", "left", "right"):
        yield np.array([getattr(e, name) for e in equations], np.int32)
    yield np.array([int(instantiated(table, e.equal, _as_they_are(table, e.equal), 1)[0]) for e in equations], np.int32)
    yield np.empty((0, len(equations)), np.uint64)


def _as_they_are(table: Table, node: Tree) -> Bound:
    return {v: np.array([v]) for v in leaves(table, node)}


def text(table, node):
    if isinstance(node,int): return str(table.leaves[node])
    return f"({table.kinds[node.kind].pattern} | {' '.join(text(table,i) for i in node.inputs)})"
