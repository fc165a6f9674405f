"""All terms of a family in columns: what each applies to which, the operators under it, where its values are.

A term is a number: variables and constants come first, then terms by level. Only the first term of each value is kept,
for larger ones to be made of; what equal values were met is remembered by what was applied to what.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from superopt.arithmetic.carrier import Array
from superopt.demands import assuming
from superopt.enumerate.family import Family
from superopt.enumerate.first_use import FirstUse
from superopt.enumerate.keyed import Keyed
from superopt.enumerate.rows import Rows
from superopt.enumerate.types import Types
from superopt.enumerate.under import shared, united
from superopt.enumerate.values import Values
from superopt.errors import SuperoptError
from superopt.term import Term, replace, variable

COLUMNS = ("app", "left", "right", "level", "type", "row", "uses")

Renaming = tuple[int, ...]
"""For each leaf of a table the leaf that takes its place."""


class Table:
    """See above. `app` is −1 for leaves; `level` counts operators, `uses` is the order of first use of variables,
    `under` the operators of a term, itself last.
    """

    def __init__(self, family: Family, seed: int, most: int) -> None:
        self.family, self.most = family, most
        self.leaves: list[Term] = []
        self.types = Types(family)
        self.values = Values(self.types, seed)
        self.first_use = FirstUse()
        self.app, self.left, self.right = (np.empty(0, np.int32) for _ in range(3))
        self.level, self.type, self.row, self.uses, self.kind = (np.empty(0, np.int32) for _ in range(5))
        self.under = np.empty((0, most), np.int32)
        self.members: list[dict[int, Array]] = []
        """The terms of each level and type."""
        self._prints = [Keyed.none()] * len(self.values.carriers)
        self._met = Keyed.none()
        self._renamed: dict[Renaming, Array] = {}
        self._new: list[tuple[Array, Array, Array]] = []
        self._count = 0
        for number, leaf in enumerate([*family.given, *family.constants]):
            self._enter_leaf(number, leaf)
        self.settle()

    def __len__(self) -> int:
        return len(self.app)

    # ------------------------------------------------------------------------------------------------------ entering

    def _enter_leaf(self, number: int, leaf: Term) -> None:
        type_ = self.types.number(leaf.shape)
        uses = self.first_use.variable(type_) if leaf.is_variable else self.first_use.nothing
        values, none = self.values.of_leaf(leaf, number), np.array([-1])
        self.leaves.append(leaf)
        row = self.values.enter(type_, values)
        columns = np.array([none, none, none, [0], [type_], row, [uses]], np.int32)
        self._new.append((columns, np.full((1, self.most), -1, np.int32), self.values.prints(type_, values)))
        self._count += 1

    def enter(self, rows: Rows, level: int, prints: Array) -> Array:
        """Keep applications of one kind at given types as terms: their numbers, which hold once all is settled."""
        app, count = int(rows.app[0]), len(rows)
        ids = np.arange(self._count, self._count + count, dtype=np.int32)
        type_ = self.types.applications[app].result
        row = self.values.enter(type_, self.evaluated(rows))
        under = self.union(rows.left, rows.right)
        if not self.types.applications[app].free:
            under[np.arange(count), (under >= 0).sum(axis=1)] = ids
        same = [np.full(count, n) for n in (level, type_)]
        columns = np.array([rows.app, rows.left, rows.right, *same, row, self.uses_of(rows)], np.int32)
        self._new.append((columns, under, prints))
        self._count += count
        return ids

    def settle(self) -> None:
        """Add what was entered, all at once."""
        self.values.settle()
        ids = np.arange(len(self), self._count, dtype=np.int32)
        old = np.array([getattr(self, name) for name in COLUMNS], np.int32)
        columns = np.concatenate([old, *(new for new, _, _ in self._new)], axis=1)
        if self._count >= 2**24 - 1 or len(self.types.applications) >= 2**15:  # what `Rows.keys` can tell apart
            raise SuperoptError(f"family {self.family.name}: more than 16 million terms; enumerate fewer operators")
        for name, column in zip(COLUMNS, columns, strict=True):
            setattr(self, name, column)
        self.kind = np.full(len(self), -1, np.int32)
        made = self.app >= 0
        self.kind[made] = self.types.kind_of[self.app[made]]
        self.under = np.concatenate([self.under, *(under for _, under, _ in self._new)])
        if self._new:
            prints = np.concatenate([prints for _, _, prints in self._new], axis=1)
            self._prints = [old.with_more(new, ids) for old, new in zip(self._prints, prints, strict=True)]
        self._new = []
        self.members = [{} for _ in range(self.most + 1)]
        for level, type_ in np.unique(np.stack([self.level, self.type], axis=1), axis=0).tolist():
            self.members[level][type_] = np.flatnonzero((self.level == level) & (self.type == type_)).astype(np.int32)

    # ------------------------------------------------------------------------------------------ what applications have

    def evaluated(self, rows: Rows, only: list[int] | None = None) -> list[Array]:
        """The values of applications of one kind at given types."""
        app = int(rows.app[0])
        terms = (rows.left, rows.right)[: len(self.types.applications[app].inputs)]
        return self.values.of(app, [self.row[t] for t in terms], only)

    def operators(self, rows: Rows) -> Array:
        """How many operators stand under each application, with its own."""
        count = self.level[rows.left].copy()
        two = rows.right >= 0
        count[two] += self.level[rows.right[two]] - self.shared(rows.left[two], rows.right[two])
        return np.asarray(count + ~self.types.is_free[rows.app])

    def uses_of(self, rows: Rows, swapped: bool = False) -> Array:
        """The orders in which applications use their variables, if asked the second input's before the first's."""
        uses = self.uses[rows.left].copy()
        two = rows.right >= 0
        both = (uses[two], self.uses[rows.right[two]])
        uses[two] = self.first_use.combined(*(both[::-1] if swapped else both))
        return uses

    def canonical(self, rows: Rows) -> Array:
        """Which applications use their variables in order, if need be with the inputs of a commutative one swapped."""
        found = self.first_use.canonical(self.uses_of(rows))
        swaps = np.flatnonzero(self.types.commutes[rows.app] & ~found)
        found[swaps] = self.first_use.canonical(self.uses_of(rows.at(swaps), swapped=True))
        return found

    def union(self, left: Array, right: Array) -> Array:
        """The operators under two terms each, those of the first and then those that only the second has."""
        own = self.under[left]
        return own if (right < 0).all() else united(own, self.under[right])

    def shared(self, left: Array, right: Array) -> Array:
        """How many operators stand under both of two terms each."""
        return shared(self.under[left], self.under[right])

    # ------------------------------------------------------------------------------------------------- what was met

    def known(self, prints: Array) -> Array:
        """For fingerprints, a row for each carrier, the term of equal value in some carrier, or −1."""
        found = np.full(prints.shape[1], -1, np.int32)
        for line, keyed in zip(prints, self._prints, strict=True):
            found = np.where(found < 0, keyed.found(line), found)
        return found

    def remember(self, rows: Rows, terms: Array) -> None:
        """That applications have the values of terms."""
        self._met = self._met.with_more(rows.keys(), terms.astype(np.int32))

    @property
    def met(self) -> int:
        """How many applications are remembered."""
        return len(self._met)

    def find(self, rows: Rows) -> Array:
        """The terms that have the values of applications met; −1 for others."""
        return np.where(rows.app >= 0, self._met.found(rows.keys()), -1)

    def swapped(self, rows: Rows) -> Rows:
        """Applications with the inputs of commutative ones in the one order in which they are met."""
        swap = (rows.app >= 0) & self.types.commutes[rows.app] & (rows.left > rows.right)
        return Rows(rows.app, np.where(swap, rows.right, rows.left), np.where(swap, rows.left, rows.right))

    # ------------------------------------------------------------------------------------------------------ renaming

    def renamed(self, renaming: Renaming) -> Array:
        """For each term the one that has the value of its renaming; −1 where that was not met."""
        if renaming not in self._renamed:
            found = np.full(len(self), -1, np.int32)
            found[: len(renaming)] = renaming
            for rows in self._runs():
                some = Rows(self.app[rows], self.left[rows], self.right[rows])
                found[rows] = self.find(self.rename(some, found))
            self._renamed[renaming] = found
        return self._renamed[renaming]

    def rename(self, rows: Rows, terms: Array) -> Rows:
        """Applications to what a renaming makes of terms; no application where that was not met."""
        left, two = terms[rows.left], rows.right >= 0
        right = np.where(two, terms[rows.right], -1)
        met = (left >= 0) & (~two | (right >= 0)) & (rows.app >= 0)
        return self.swapped(Rows(np.where(met, rows.app, -1), np.where(met, left, 0), np.where(met, right, -1)))

    def in_order(self, rows: Rows, swapped: bool) -> Rows:
        """Applications renamed so that they use their variables in order, the second input's first if asked."""
        found = Rows.none(len(rows))
        uses = self.uses_of(rows, swapped)
        for order in np.unique(uses):
            mine = np.flatnonzero(uses == order)
            terms = self.renamed(self.first_use.in_order(int(order), len(self.leaves)))
            new = self.rename(rows.at(mine), terms)
            found.put(mine, new)
        return found

    def _runs(self) -> Iterator[Array]:
        """The terms that are no leaves, level by level."""
        levels = np.diff(self.level) != 0
        cuts = np.flatnonzero(levels | (np.diff(self.types.is_free[self.app]) != 0)) + 1
        for first, after in itertools.pairwise([0, *cuts.tolist(), len(self)]):
            if after > first >= len(self.leaves):
                yield np.arange(first, after, dtype=np.int32)
            elif after > len(self.leaves):
                yield np.arange(len(self.leaves), after, dtype=np.int32)

    # ------------------------------------------------------------------------------------------------------ as terms

    def term(self, number: int) -> Term:
        """A term of the table, over symbols."""
        if self.app[number] < 0:
            return self.leaves[number]
        a = self.types.applications[int(self.app[number])]
        inputs = [self.term(int(i)) for i in (self.left[number], self.right[number])[: len(a.inputs)]]
        return filled(a.term, a.holes, inputs)


def filled(term: Term, holes: tuple[str, ...], inputs: list[Term]) -> Term:
    """A term over holes, with terms in their place."""
    with assuming():
        return replace(term, {variable(h, i.shape): i for h, i in zip(holes, inputs, strict=True)})
