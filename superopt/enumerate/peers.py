"""Equal terms of the last level: none of them is in the table, and of all renamings of each only one was met.

So the least fingerprint of all renamings tells which are equal up to names. A renaming of a term is what it applies, on
the renamings of what it applies it to, and those are in the table.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from superopt.arithmetic import Array
from superopt.enumerate.grow import firsts
from superopt.enumerate.reduce import Equation, Rows, Stated, applied, same_value, values_of
from superopt.enumerate.table import Renaming, Table

def peers(table: Table, rows: Rows) -> tuple[Rows, Stated]:
    """The applications that are equal to an earlier one up to names, and what is stated of each."""
    prints, left, right = _least(table, rows)
    order = np.lexsort((rows.right, rows.left, rows.app))
    first = np.arange(len(rows))
    first[order] = order[firsts(prints[:, order], np.ones(len(rows), bool))]
    same = (rows.app == rows.app[first]) & (left == left[first]) & (right == right[first])
    mine = np.flatnonzero((first != np.arange(len(rows))) & ~same & (left >= 0) & (left[first] >= 0))
    ones, others = (Rows(rows.app[i], left[i], right[i], rows.equal[i], rows.prints[:, i]) for i in (mine, first[mine]))
    others.prints = values_of(table, others)
    mine = mine[same_value(table, ones, others)]
    numbered = rows.at(mine)
    numbered.equal = -1 - mine.astype(np.int64)  # not a term: what it is equal to is stated below

    def stated(given: Rows, i: int) -> Equation:
        me = -1 - int(given.equal[i])
        other = int(first[me])
        target = applied(table, int(rows.app[other]), int(left[other]), int(right[other]))
        return Equation(int(rows.app[me]), int(left[me]), int(right[me]), target)

    return numbered, stated


def _least(table: Table, rows: Rows) -> tuple[Array, Array, Array]:
    """Of all renamings of each application the least fingerprint in each carrier, and of the first what it applies to.

    In other carriers the same renaming is taken, so that equations are found there too where one renaming is least.
    """
    prints = np.full((len(table.carriers), len(rows)), 2**64 - 1, np.uint64)
    left, right = (np.full(len(rows), -1, np.int64) for _ in range(2))
    uses = table.uses_of(rows)
    for group in _groups(rows.app.astype(np.int64) << 32 | uses):
        app, used = int(rows.app[group[0]]), frozenset(table.first_use.orders[uses[group[0]]])
        for renaming in _renamings(table, used):
            terms = table.renamed(renaming)
            two = rows.right[group] >= 0
            a, b = terms[rows.left[group]], np.where(two, terms[rows.right[group]], -1)
            met = (a >= 0) & (~two | (b >= 0))
            mine, a, b = group[met], a[met], b[met]
            new = np.stack([table.first_prints(app, a, b, line) for line in range(len(table.carriers))])
            better = new[0] < prints[0, mine]
            prints[:, mine[better]], left[mine[better]], right[mine[better]] = new[:, better], a[better], b[better]
    type_ = np.array([a.result for a in table.applications], np.uint64)[rows.app]
    swap = table.commutative[rows.app] & (left > right)
    return prints + type_, np.where(swap, right, left), np.where(swap, left, right)


def _renamings(table: Table, used: frozenset[int]) -> Iterator[Renaming]:
    """All that swap variables of one type among some."""
    by_type: dict[int, list[int]] = {}
    for v in sorted(used):
        by_type.setdefault(int(table.type[v]), []).append(v)
    for orders in itertools.product(*(itertools.permutations(group) for group in by_type.values())):
        new = {v: w for group, order in zip(by_type.values(), orders, strict=True) for v, w in zip(group, order, strict=True)}
        yield tuple(new.get(v, v) for v in range(len(table.leaves)))


def _groups(code: Array) -> list[Array]:
    order = np.argsort(code, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(code[order])) + 1) if len(code) else []
