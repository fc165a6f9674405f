"""The classes of equal terms of an enumeration, and what of them equations connect: an e-graph (egg, POPL 2021), in
columns.

The nodes are the leaves and all applications met, each to terms that stand for their values. An equation connects two
nodes of a class wherever it applies. Of the last level only canonical applications were met; there a node stands for
all its renamings.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from superopt.arithmetic.carrier import Array
from superopt.enumerate.by_kinds import ByKinds
from superopt.enumerate.patterns import (
    Bound,
    Node,
    Pattern,
    applications,
    applied,
    either_way,
    instantiated,
    match,
)
from superopt.enumerate.peers import groups
from superopt.enumerate.rows import Rows
from superopt.enumerate.table import Table
from superopt.term import Term, variable


@dataclass(frozen=True)
class Equation:
    """Two patterns of equal value, and the numbers of the nodes that they were found at."""

    source: Node
    target: Pattern
    node: int
    other: int


class Classes:
    """All nodes in columns. `known_by` is for each the node that its class is known by."""

    def __init__(self, table: Table, rows: Rows, known_by: Array, stated: Rows) -> None:
        """`rows` and `known_by` are of applications and leaves; `stated` are the renamings at which each is equal to
        what it is known by, for those that are so up to names only.
        """
        self.table, self.rows, self.known_by, self.stated = table, rows, known_by, stated
        self.symmetric = np.zeros(0, np.int64)
        """Nodes of the last level that are equal to themselves renamed; below it all renamings were met."""
        self.parent = np.arange(len(rows))
        self._same = self.parent.copy()
        keys = rows.keys()
        self._order = np.argsort(keys, kind="stable")
        self._keys = keys[self._order]
        start = len(table.leaves)
        self._by_kinds = ByKinds(table, rows)
        self.level = np.zeros(len(rows), np.int32)
        self.level[start:] = table.operators(rows.at(np.arange(start, len(rows))))

    def find(self, rows: Rows) -> Array:
        """The nodes of applications; −1 for those not met."""
        wanted = rows.keys()
        place = np.minimum(np.searchsorted(self._keys, wanted), len(self._keys) - 1)
        return np.where((self._keys[place] == wanted) & (rows.app >= 0), self._order[place], -1)

    def of_terms(self, terms: Array) -> Array:
        """The nodes that terms were made by."""
        table = self.table
        made = Rows(table.app[terms], table.left[terms], table.right[terms])
        return np.where(made.app < 0, terms, self.find(made))

    # ---------------------------------------------------------------------------------------------------- connections

    def roots(self, nodes: Array) -> Array:
        """What each node is connected to: one node for all that are connected."""
        found = self.parent[nodes]
        while (self.parent[found] != found).any():
            found = self.parent[found]
        self.parent[nodes] = found
        return np.asarray(found)

    def connect(self, ones: Array, others: Array) -> None:
        """Connect nodes, row by row."""
        while len(ones):
            a, b = self.roots(ones), self.roots(others)
            apart = a != b
            ones, others, a, b = ones[apart], others[apart], a[apart], b[apart]
            np.minimum.at(self.parent, np.maximum(a, b), np.minimum(a, b))

    def same(self, ones: Array, others: Array) -> None:
        """Connect nodes for good: they are the same but for names."""
        self.connect(ones, others)
        self._same = self.parent.copy()

    def disconnect(self) -> None:
        """Undo all that equations connected."""
        self.parent = self._same.copy()

    def connected(self, node: int, other: int) -> bool:
        """Whether two nodes are connected."""
        a, b = self.roots(np.array([node, other])).tolist()
        return bool(a == b)

    def apply(self, equation: Equation, level: int | None = None) -> None:
        """Connect what an equation says is equal wherever its source stands, at all levels or one, and values agree."""
        self.connect(np.array([equation.node]), np.array([equation.other]))
        for nodes, bound in self._matches(equation.source, level):
            others = self._equal(nodes, equation.target, bound)
            self.connect(nodes[others >= 0], others[others >= 0])

    def at_ranks(self, equation: Equation) -> list[dict[int, Term]]:
        """Variables that an equation holds for, one set for each combination of ranks that it was met at.

        A rule is about tensors of given ranks, but an equation is met at all that its operators take.
        """
        table, found = self.table, dict[tuple[int, ...], dict[int, Term]]()
        for nodes, bound in self._matches(equation.source, None):
            names = sorted(v for v in bound if table.leaves[v].is_variable)
            ranks, rank_of = np.zeros(len(nodes), np.int64), table.types.ranks()
            for v in names:
                ranks = ranks << 4 | rank_of[table.type[bound[v]]]
            first = [self._first_equal(nodes, equation.target, bound, rows) for rows in groups(ranks)]
            for row in sorted(row for row in first if row >= 0):
                shapes = [table.types.shapes[table.type[bound[v][row]]] for v in names]
                new = {v: variable(table.leaves[v].label, s) for v, s in zip(names, shapes, strict=True)}
                found.setdefault(tuple(map(len, shapes)), new)
        return list(found.values())

    def _first_equal(self, nodes: Array, target: Pattern, bound: Bound, rows: Array) -> int:
        """The first of some rows at which the target is equal; −1 for none. Mostly it is the very first."""
        start, count = 0, 1
        while start < len(rows):
            some = rows[start : start + count]
            held = self._equal(nodes[some], target, {v: terms[some] for v, terms in bound.items()}) >= 0
            if held.any():
                return int(some[held.argmax()])
            start, count = start + count, count * 8
        return -1

    def _matches(self, source: Node, level: int | None) -> Iterator[tuple[Array, Bound]]:
        """The nodes at which a pattern stands, and what its variables are there, for each order of its inputs."""
        for pattern in either_way(self.table, source):
            assert isinstance(pattern, Node)
            nodes = self._by_kinds.nodes(pattern)
            if level is not None:
                nodes = nodes[self.level[nodes] == level]
            rows, bound = match(self.table, pattern, self.rows.left[nodes], self.rows.right[nodes])
            if len(rows):
                yield nodes[rows], bound

    def _equal(self, nodes: Array, target: Pattern, bound: Bound) -> Array:
        """The nodes that a pattern makes, row by row; −1 where one was not met or is in another class."""
        others = self._instances(target, bound, len(nodes))
        return np.where(self.known_by[nodes] == self.known_by[others], others, -1)

    def _instances(self, target: Pattern, bound: Bound, count: int) -> Array:
        """The nodes that a pattern makes, row by row; −1 where one was not met."""
        table = self.table
        if isinstance(target, int):
            terms = instantiated(table, target, bound, count)
            return np.where(terms >= 0, self.of_terms(np.maximum(terms, 0)), -1)
        rows = applications(table, target, bound, count)
        found = self.find(rows)
        for swapped in (False, True):
            unmet = np.flatnonzero((found < 0) & (rows.app >= 0))
            unmet = unmet[table.operators(rows.at(unmet)) == table.most]
            if swapped:
                unmet = unmet[table.types.commutes[rows.app[unmet]]]
            found[unmet] = self.find(table.in_order(rows.at(unmet), swapped))
        return found

    # ------------------------------------------------------------------------------------------------------ equations

    def equation(self, node: int) -> Equation:
        """That a node is equal to the one its class is known by."""
        other = int(self.known_by[node])
        source = self.pattern(node)
        assert isinstance(source, Node)
        return Equation(source, self.pattern(other), node, other)

    def pattern(self, node: int) -> Pattern:
        """What a node is, down to leaves, in the names at which it is equal to what its class is known by."""
        if self.rows.app[node] < 0:
            return node
        return applied(self.table, *(int(c[node]) for c in (self.rows.app, self.stated.left, self.stated.right)))
