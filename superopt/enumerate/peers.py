"""Equal terms of the last level: none of them is in the table, and of all renamings of each only one was met.

So the least fingerprint of all renamings tells which are equal up to names. A renaming of an application is what it
applies, to the renamings of what it applies it to, and those are in the table.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from superopt.arithmetic.carrier import Array
from superopt.enumerate.grow import firsts
from superopt.enumerate.rows import Rows
from superopt.enumerate.table import Renaming, Table


def peers(table: Table, rows: Rows) -> tuple[Array, Rows, Array]:
    """For each application the first that is equal to it up to names, and the renamings at which the two are equal;
    and whether it is equal to itself renamed in all carriers, other than by the order of inputs.
    """
    prints, stated, again = _least(table, rows)
    first = firsts(prints, np.ones(len(rows), bool))
    other = np.flatnonzero((first != np.arange(len(rows))) & (stated.app >= 0) & (stated.app[first] >= 0))
    same = np.zeros(len(rows), bool)
    same[other] = (_prints(table, stated.at(other)) == _prints(table, stated.at(first[other]))).any(axis=0)
    tied = np.flatnonzero(again.app >= 0)
    unlike = (_prints(table, stated.at(tied)) != _prints(table, again.at(tied))).all(axis=0)
    again.app[tied[unlike]] = -1
    return np.where(same, first, np.arange(len(rows))), stated, again.app >= 0


def _prints(table: Table, rows: Rows) -> Array:
    """The fingerprints of applications, a row for each carrier."""
    prints = np.empty((len(table.values.carriers), len(rows)), np.uint64)
    for app in np.unique(rows.app):
        mine = np.flatnonzero(rows.app == app)
        values = table.evaluated(rows.at(mine))
        prints[:, mine] = table.values.prints(table.types.applications[app].result, values)
    return prints


def _least(table: Table, rows: Rows) -> tuple[Array, Rows, Rows]:
    """The least fingerprint of all renamings of each application, by few inputs, one of them that has it, and another.

    It is least in the first carrier: what is equal in another only is found where the same renaming is least there.
    """
    prints = np.full((len(table.values.carriers), len(rows)), 2**64 - 1, np.uint64)
    least, again = Rows.none(len(rows)), Rows.none(len(rows))
    uses = table.uses_of(rows)
    for group in groups(rows.app.astype(np.int64) << 32 | uses):
        for renaming in _renamings(table, table.first_use.orders[uses[group[0]]]):
            new = table.rename(rows.at(group), table.renamed(renaming))
            met = np.flatnonzero(new.app >= 0)
            if not len(met):
                continue
            new, mine = new.at(met), group[met]
            terms = (new.left, new.right)[: len(table.types.applications[int(new.app[0])].inputs)]
            found = table.values.quick_prints(int(new.app[0]), [table.row[t] for t in terms])
            ties = (found == prints[:, mine]).all(axis=0) & (new.keys() != least.at(mine).keys())
            again.put(mine[ties], new.at(ties))
            better = found[0] < prints[0, mine]
            mine, new = mine[better], new.at(better)
            prints[:, mine] = found[:, better]
            least.put(mine, new)
            again.app[mine] = -1
    result = np.array([a.result for a in table.types.applications], np.uint64)[rows.app]
    return prints + result * np.uint64(0x9E3779B97F4A7C15), least, again


def _renamings(table: Table, used: tuple[int, ...]) -> Iterator[Renaming]:
    """All that swap variables of one type among some."""
    by_type: dict[int, list[int]] = {}
    for v in sorted(used):
        by_type.setdefault(int(table.type[v]), []).append(v)
    for orders in itertools.product(*(itertools.permutations(group) for group in by_type.values())):
        pairs = zip(itertools.chain(*by_type.values()), itertools.chain(*orders), strict=True)
        new = dict(pairs)
        yield tuple(new.get(v, v) for v in range(len(table.leaves)))


def groups(code: Array) -> list[Array]:
    """The rows of each value, in the order of the values."""
    order = np.argsort(code, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(code[order])) + 1) if len(code) else []
