"""Growing terms level by level, in columns: plan, evaluate, keep what is new, and note what is equal.

Two terms of equal value in some exact carrier are equal, up to the error of fingerprints; the earlier stands for both,
and larger terms are made of such only (TASO, SOSP 2019; Ruler, OOPSLA 2021). Of the last level fingerprints are all
that is kept.
"""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from superopt.arithmetic.carrier import Array
from superopt.enumerate.plan import free_plans, plans
from superopt.enumerate.represented import represented
from superopt.enumerate.rows import Rows
from superopt.enumerate.table import Table
from superopt.errors import SuperoptError

Progress = Callable[[str, int, int], None]
"""Told a stage's name, how much of it is done and how much there is."""

NUMBERS = 2**22
"""How many numbers a step of an evaluation may take at a time."""


@dataclass
class Met:
    """Applications met, with the fingerprints of their values and the terms that stand for them (−1 for new ones)."""

    rows: Rows
    prints: Array
    stands: Array


class OutOfMemory(SuperoptError):
    """A level takes more memory than was allowed."""


def grow(table: Table, level: int, last: bool, progress: Progress | None = None, memory: float | None = None) -> Met:
    """All applications of a level; at level 0 of what counts as no operator. Those of new
    value become terms, and all are remembered, but at the last level.
    """
    if level == 0:
        met = evaluated(table, free_plans(table, 0))
        _keep(table, met, level)
        return met
    met = evaluated(table, _told(table, plans(table, level, last), level, progress, memory))
    if last:
        return met
    start = len(table)
    _keep(table, met, level)
    free = evaluated(table, free_plans(table, start))
    _keep(table, free, level)
    return joined([met, free])


def _told(
    table: Table, planned: Iterator[Rows], level: int, progress: Progress | None, memory: float | None
) -> Iterator[Rows]:
    """The plans, while it is told how many of the operators are through, and looked how much memory is taken."""
    operators = list(table.family.operators)
    made = len(table) - len(table.leaves)
    so_far = f"so far {made:,} terms for {represented(table, level - 1):,} graphs, {table.met - made:,} candidates"
    for rows in planned:
        if progress:
            kind = table.types.kinds[table.types.applications[int(rows.app[0])].kind]
            progress(f"terms of {level} operators; {so_far}", operators.index(kind.pattern), len(operators))
        if memory is not None and (taken := memory_taken()) > memory:
            raise OutOfMemory(f"terms of {level} operators take more than {memory:g} GB ({taken:.1f} GB so far)")
        yield rows


def memory_taken() -> float:
    """The memory that this process takes now, in GB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1]) if Path("/proc/self/statm").exists() else 0
    return pages * resource.getpagesize() / 1e9 or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def evaluated(table: Table, planned: Iterator[Rows]) -> Met:
    """Applications with the fingerprints of their values, and the terms of before that stand for them."""
    none = np.empty(0, np.int32)
    parts = [Met(Rows(none, none, none), np.empty((len(table.values.carriers), 0), np.uint64), none)]
    for rows in planned:
        app = int(rows.app[0])
        step = max(64, NUMBERS // table.values.width(app))
        for start in range(0, len(rows), step):
            some = rows.at(np.arange(start, min(start + step, len(rows))))
            prints = table.values.prints(table.types.applications[app].result, table.evaluated(some))
            parts.append(Met(some, prints, table.known(prints)))
    return joined(parts)


def joined(parts: list[Met]) -> Met:
    """Several as one."""
    app, left, right = (np.concatenate([getattr(p.rows, name) for p in parts]) for name in ("app", "left", "right"))
    prints = np.concatenate([p.prints for p in parts], axis=1)
    return Met(Rows(app, left, right), prints, np.concatenate([p.stands for p in parts]))


def _keep(table: Table, met: Met, level: int) -> None:
    """Make terms of the new values, and remember all."""
    first = firsts(met.prints, met.stands < 0)
    new = np.flatnonzero((met.stands < 0) & (first == np.arange(len(first))))
    cuts = np.flatnonzero(np.diff(met.rows.app[new])) + 1
    for mine in np.split(new, cuts) if len(new) else ():
        met.stands[mine] = table.enter(met.rows.at(mine), level, met.prints[:, mine])
    table.settle()
    met.stands = np.where(met.stands < 0, met.stands[first], met.stands)
    table.remember(met.rows, met.stands)


def firsts(prints: Array, among: Array) -> Array:
    """For each of some fingerprints, the first that is equal in some carrier; chains of such are followed."""
    first = np.arange(prints.shape[1])
    rows = np.flatnonzero(among)
    for line in prints[:, rows] if len(rows) else ():
        order = np.argsort(line, kind="stable")
        starts = np.flatnonzero(np.r_[True, line[order][1:] != line[order][:-1]])
        place = np.repeat(order[starts], np.diff(np.r_[starts, len(line)]))
        first[rows[order]] = np.minimum(first[rows[order]], rows[place])
    while (first[first] != first).any():
        first = first[first]
    return first
