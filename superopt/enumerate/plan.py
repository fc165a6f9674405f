"""Which terms each operator is applied to at a level: those under which, together, stand one operator less.

Two terms may share operators, which count once. At the last level, of which nothing is made, only canonical terms are
of interest: one of all renamings.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from superopt.arithmetic.carrier import Array
from superopt.enumerate.family import Pattern
from superopt.enumerate.rows import Rows
from superopt.enumerate.table import Table

CHUNK = 2**18
"""How many applications are planned at a time."""


def plans(table: Table, level: int, last: bool) -> Iterator[Rows]:
    """All applications of a level, in one order, each pair of terms once."""
    for pattern in table.family.operators:
        if pattern.free:
            continue
        yield from (
            _unary(table, pattern, level, last) if len(pattern.holes) == 1 else _binary(table, pattern, level, last)
        )


def free_plans(table: Table, first: int) -> Iterator[Rows]:
    """What counts as no operator, over terms from a number on."""
    new = np.arange(first, len(table), dtype=np.int32)
    for pattern in table.family.operators:
        for type_ in np.unique(table.type[new]).tolist() if pattern.free else ():
            ids = new[table.type[new] == type_]
            for app in table.types.applied(pattern, (type_,)):
                yield _over_one(app, ids)


def _over_one(app: int, ids: Array) -> Rows:
    return Rows(np.full(len(ids), app, np.int32), ids, np.full(len(ids), -1, np.int32))


def _unary(table: Table, pattern: Pattern, level: int, last: bool) -> Iterator[Rows]:
    for type_, ids in table.members[level - 1].items():
        if last:
            ids = ids[table.first_use.canonical(table.uses[ids])]
        for app in table.types.applied(pattern, (type_,)) if len(ids) else ():
            for chunk in _chunks(len(ids)):
                yield _over_one(app, ids[chunk])


def _binary(table: Table, pattern: Pattern, level: int, last: bool) -> Iterator[Rows]:
    for la in range(level):
        for lb in range(level - 1 - la, level):
            for a, b in itertools.product(table.members[la], table.members[lb]):
                for app in table.types.applied(pattern, (a, b)):
                    commutes = bool(table.types.commutes[app])
                    pairs = _apart if la + lb == level - 1 else _together
                    for left, right in pairs(table, table.members[la][a], table.members[lb][b], level, last):
                        kept = _kept(table, left, right, level, last, commutes)
                        if len(kept[0]):
                            yield Rows(np.full(len(kept[0]), app, np.int32), *kept)


def _kept(table: Table, left: Array, right: Array, level: int, last: bool, commutes: bool) -> tuple[Array, Array]:
    """Of pairs those of the level, and of two that are the same but for an order of no meaning one."""
    if table.level[left[:1]].any() and table.level[right[:1]].any():
        whole = table.level[left] + table.level[right] - table.shared(left, right) == level - 1
        left, right = left[whole], right[whole]
    if last:
        fits = _canonical(table, left, right)
        if commutes:
            fits &= (left <= right) | ~_canonical(table, right, left)
        left, right = left[fits], right[fits]
    elif commutes:
        left, right = left[left <= right], right[left <= right]
    return (np.minimum(left, right), np.maximum(left, right)) if commutes else (left, right)


def _canonical(table: Table, left: Array, right: Array) -> Array:
    return table.first_use.canonical(table.first_use.combined(table.uses[left], table.uses[right]))


def _apart(table: Table, lefts: Array, rights: Array, level: int, last: bool) -> Iterator[tuple[Array, Array]]:
    """Pairs of all with all; at the last level those that can be canonical, found order by order of the first."""
    if not last:
        yield from _all_pairs(lefts, rights)
        return
    uses, of_rights = table.uses[lefts], table.uses[rights]
    for order in np.unique(uses[table.first_use.canonical(uses)]):
        fits = table.first_use.canonical(table.first_use.combined(np.full(len(rights), order), of_rights))
        yield from _all_pairs(lefts[uses == order], rights[fits])


def _all_pairs(lefts: Array, rights: Array) -> Iterator[tuple[Array, Array]]:
    for chunk in _chunks(len(lefts) if len(rights) else 0, max(1, CHUNK // max(1, len(rights)))):
        yield np.repeat(lefts[chunk], len(rights)), np.tile(rights, len(lefts[chunk]))


def _together(table: Table, lefts: Array, rights: Array, level: int, last: bool) -> Iterator[tuple[Array, Array]]:
    """Pairs that share as many operators as makes them of the level, each once.

    Where one is to be wholly under the other, it is one of the other's operators. Else they share one at least that
    stands over no other, for what is under a shared operator is shared.
    """
    if last:
        lefts = lefts[table.first_use.canonical(table.uses[lefts])]
    if not len(lefts) or not len(rights):
        return
    la, lb = int(table.level[lefts[0]]), int(table.level[rights[0]])
    shared = la + lb - (level - 1)
    if shared > min(la, lb):
        return
    if shared == min(la, lb):
        keys = _within(table, lefts, rights) if la <= lb else _swapped(_within(table, rights, lefts))
    else:
        one, other = (_by_operator(table, ids, at_most=1) for ids in (lefts, rights))
        both = sorted(one.keys() & other.keys())
        keys = _concatenated([_packed(x, y) for k in both for x, y in _all_pairs(one[k], other[k])])
    pairs = _distinct(keys)
    for chunk in _chunks(len(pairs)):
        yield (pairs[chunk] >> 32).astype(np.int32), (pairs[chunk] & 0xFFFFFFFF).astype(np.int32)


def _within(table: Table, small: Array, large: Array) -> Array:
    """Terms with those under which they stand, packed."""
    above = _by_operator(table, large, at_most=table.most)
    return _concatenated([_packed(np.full(len(above[k]), k), above[k]) for k in small.tolist() if k in above])


def _by_operator(table: Table, ids: Array, at_most: int) -> dict[int, Array]:
    """The terms over each operator of up to a level."""
    under = table.under[ids]
    rows, places = np.nonzero((under >= 0) & (table.level[under] <= at_most))
    operators = under[rows, places]
    order = np.argsort(operators, kind="stable")
    kinds, starts = np.unique(operators[order], return_index=True)
    return dict(zip(kinds.tolist(), np.split(ids[rows[order]], starts[1:]), strict=False))


def _packed(left: Array, right: Array) -> Array:
    return left.astype(np.int64) << 32 | right.astype(np.int64)


def _swapped(keys: Array) -> Array:
    return (keys & 0xFFFFFFFF) << 32 | keys >> 32


def _concatenated(parts: list[Array]) -> Array:
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _distinct(keys: Array) -> Array:
    keys = np.sort(keys)
    return keys[np.r_[True, keys[1:] != keys[:-1]]] if len(keys) else keys


def _chunks(count: int, size: int = CHUNK) -> Iterator[slice]:
    for start in range(0, count, size):
        yield slice(start, start + size)
