"""Growing terms level by level, in columns: plan, evaluate, keep what is new, and note what is equal.

Two terms of equal value in some exact carrier are equal, up to the error of fingerprints; the earlier stands for both,
and larger terms are made of such only (TASO, SOSP 2019; Ruler, OOPSLA 2021). Of the last level fingerprints are all
that is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor

import numpy as np

from superopt.arithmetic import Array
from superopt.enumerate.plan import Plan, free_plans, plans
from superopt.enumerate.table import Found, Table

Progress = Callable[[str, int, int], None]
"""Told a stage's name, how much of it is done and how much there is."""

NUMBERS = 2**22
"""How many numbers a step of an evaluation may take at a time."""


def grow(table: Table, level: int, last: bool) -> Found:
    """All applications of a level. Those of new value become terms, and all are remembered, but at the last level."""
    found = met(table, plans(table, level, last))
    if last:
        return found
    start = len(table)
    keep(table, found, level)
    free = met(table, free_plans(table, start))
    keep(table, free, level)
    return joined([found, free])


def met(table: Table, planned: Iterator[Plan]) -> Found:
    """Applications with the fingerprints of their values."""
    parts = [Found(*(np.empty(0, np.int32) for _ in range(3)), np.empty((table.lines, 0), np.uint64))]
    for app, left, right in planned:
        step = max(64, NUMBERS // table.width(app))
        for start in range(0, len(left), step):
            a, b = left[start : start + step], right[start : start + step]
            prints = table.prints_of(table.applications[app].result, table.evaluated(app, a, b))
            parts.append(Found(np.full(len(a), app, np.int32), a, b, prints))
    return joined(parts)


def joined(parts: list[Found]) -> Found:
    """Several as one."""
    app, left, right = (np.concatenate([getattr(p, name) for p in parts]) for name in ("app", "left", "right"))
    return Found(app, left, right, np.concatenate([p.prints for p in parts], axis=1))


def keep(table: Table, found: Found, level: int) -> Array:
    """Make terms of the new values, and remember all; the terms that stand for each."""
    stands = table.known(found.prints)
    first = firsts(found.prints[: len(table.carriers)], stands < 0)
    new = np.flatnonzero((stands < 0) & (first == np.arange(len(found))))
    start = len(table)
    for app, rows in _runs(found.app[new], new):
        left, right = found.left[rows], found.right[rows]
        stands[rows] = np.arange(start, start + len(rows))
        uses = table.first_use.combined(table.uses[left], table.uses[right]) if (right >= 0).any() else table.uses[left]
        values = table.evaluated(app, left, right)
        type_ = table.applications[app].result
        table.enter(app, left, right, level, type_, uses, values, found.prints[:, rows])
        start += len(rows)
    table.settle()
    stands = np.where(stands < 0, stands[first], stands)
    table.remember(found.app, found.left, found.right, stands)
    return stands


def firsts(prints: Array, among: Array) -> Array:
    """For each of some fingerprints, the first that is equal in some carrier; chains of such are followed."""
    first = np.arange(prints.shape[1])
    rows = np.flatnonzero(among)
    for line in prints[:, rows]:
        order = np.argsort(line, kind="stable")
        starts = np.flatnonzero(np.r_[True, line[order][1:] != line[order][:-1]]) if len(line) else order
        place = np.repeat(order[starts], np.diff(np.r_[starts, len(line)]))
        first[rows[order]] = np.minimum(first[rows[order]], rows[place])
    while (first[first] != first).any():
        first = first[first]
    return first


def _runs(apps: Array, rows: Array) -> Iterator[tuple[int, Array]]:
    """The rows of each application, in pieces of equal application one after another."""
    if len(rows):
        cuts = np.flatnonzero(np.diff(apps)) + 1
        for piece in np.split(np.arange(len(rows)), cuts):
            yield int(apps[piece[0]]), rows[piece]
