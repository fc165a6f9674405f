"""From a family to equations: grow terms level by level, find what is equal, and keep what follows from no others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from superopt.enumerate.classes import Classes, Equation
from superopt.enumerate.columns import numel
from superopt.enumerate.every import every_equation, itself_renamed
from superopt.enumerate.family import SIZES, Family
from superopt.enumerate.grow import Met, OutOfMemory, Progress, grow, joined
from superopt.enumerate.patterns import as_term
from superopt.enumerate.peers import peers
from superopt.enumerate.prune import POINTWISE_STEPS, SMALL, STEPS
from superopt.enumerate.represented import represented
from superopt.enumerate.rows import Rows
from superopt.enumerate.table import Table
from superopt.errors import ShapeError, UsageError
from superopt.evaluate import same_value
from superopt.operators.symbolic import resize
from superopt.term import Term

MOST_OTHERS = 50_000
"""How many equations that follow from others are looked at, at most: to state one and to look for the steps takes ten
milliseconds. Of more the levels of the most operators are left out, and the counts say so.
"""


BYTES = 8
"""Of a number that terms are evaluated on."""


@dataclass
class Equations:
    """Pairs of equal terms, at the family's sizes that are unlike each other; and how many there were at each stage.

    `others` are those that follow from the `pairs`, in any number of steps; where these are very many, those of fewer
    operators.
    """

    pairs: list[tuple[Term, Term]]
    others: list[tuple[Term, Term]] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)


def equations(
    family: Family,
    max_ops: int,
    seed: int,
    progress: Progress | None = None,
    memory: float | None = None,
    steps: int = STEPS,
) -> Equations:
    """All equations between terms of up to `max_ops` operators, apart those that follow from others.

    The result depends on the seed alone, and on that with the probability that fingerprints collide. With `memory`, in
    GB, levels end before the one that passes it. What follows from others is told of for whoever leaves out what these
    replay in so many `steps`: of `SMALL` terms, and with 0 of any, it is all that is equal, and not only what is equal
    to the term that a class is known by. Raises `UsageError` where even the first level passes.
    """
    _demand_room(family, memory)
    table = Table(family, seed, max_ops)
    met = _grown(table, progress, memory)
    counts = {"complete to operators": table.most, "graphs represented": represented(table, table.most)}
    counts["evaluated"] = len(met.rows)
    classes = classes_of(table, met)
    candidates = np.flatnonzero(classes.known_by != np.arange(len(classes.known_by)))
    counts["candidates"] = len(candidates)
    start = len(table.leaves)
    canonical = candidates[table.canonical(classes.rows.at(candidates))]
    counts["up to names"] = len(canonical)
    assert (canonical >= start).all()
    found = independent(classes, canonical, progress)
    counts["that follow from no smaller ones"] = len(found)
    found = general(classes, found, progress)
    counts["that follow from no others"] = len(found)
    pairs = [pair for equation in found for pair in _stated(classes, equation)]
    counts["at all ranks"] = len(pairs)
    if not steps:
        others = list(every_equation(classes, np.union1d(canonical, classes.symmetric), same_value, progress))
    else:
        others = [classes.equation(node) for node in _others(classes, canonical, found)]
        others += itself_renamed(classes, same_value, steps <= POINTWISE_STEPS, progress)
        others += every_equation(classes, canonical[classes.level[canonical] <= SMALL], same_value, progress)
    counts["of a term and itself renamed"] = len(classes.symmetric)
    counts["that follow from others, looked at"] = len(others)
    stated: list[tuple[Term, Term]] = []
    for i, equation in enumerate(others):
        if progress and i % 64 == 0:
            progress("state what follows", i, len(others))
        stated += _stated(classes, equation)
    return Equations(pairs, stated, counts)


def _others(classes: Classes, nodes: np.ndarray, kept: list[Equation]) -> list[int]:
    """The nodes of equations that are not kept: those of all levels that together are not too many."""
    others = np.setdiff1d(nodes, [equation.node for equation in kept])
    of_level = classes.level[others]
    least = [level for level in range(classes.table.most + 1) if np.count_nonzero(of_level <= level) <= MOST_OTHERS]
    return [int(node) for node in others[of_level <= max(least, default=0)]]


def _stated(classes: Classes, equation: Equation) -> Iterator[tuple[Term, Term]]:
    """An equation as terms at sizes that are numbers, once for each combination of ranks."""
    table, sides = classes.table, (equation.source, equation.target)
    for leaves in classes.at_ranks(equation) or [{}]:
        try:
            source, target = resize([as_term(table, side, leaves) for side in sides], table.family.numbers(SIZES - 1))
        except ShapeError:
            continue
        yield source, target


def _demand_room(family: Family, memory: float | None) -> None:
    """Raise `UsageError` where the values of the variables alone pass the memory, in GB."""
    taken = sum(BYTES * numel(v) for i in range(SIZES) for v in resize(family.given, family.numbers(i))) / 1e9
    if memory is not None and taken > memory:
        room = f"{taken:.3g} GB, of {memory:g} GB that may be taken"
        raise UsageError(f"family {family.name}: the values of its variables take {room}; give smaller sizes")


def _grown(table: Table, progress: Progress | None, memory: float | None) -> Met:
    """All levels, as far as the memory goes."""
    levels: list[Met] = []
    for level in range(table.most + 1):
        try:
            levels.append(grow(table, level, level == table.most, progress, memory))
        except (OutOfMemory, MemoryError) as error:
            if level < 2:
                raise UsageError(f"{error}; allow more with --memory") from None
            table.most = level - 1
            break
        if level == 1 and not len(levels[1].rows):
            names = ", ".join(map(str, table.family.operators))
            raise UsageError(
                f"family {table.family.name}: no operator takes any of its variables at its sizes: {names}"
            )
    return joined(levels)


def classes_of(table: Table, met: Met) -> Classes:
    """The classes of all that was met; of new values of the last level, equal up to names."""
    count = len(table.leaves)
    leaves = np.arange(count)
    none = np.full(count, -1)
    rows = Rows(*(np.concatenate(c) for c in ((none, met.rows.app), (leaves, met.rows.left), (none, met.rows.right))))
    classes = Classes(table, rows, np.arange(len(rows)), Rows(rows.app, rows.left.copy(), rows.right.copy()))
    stands = np.concatenate([leaves, met.stands])
    old, new = np.flatnonzero(stands >= 0), np.flatnonzero(stands < 0)
    classes.known_by[old] = classes.of_terms(stands[old])
    first, stated, symmetric = peers(table, rows.at(new))
    classes.symmetric = new[symmetric]
    classes.known_by[new] = new[first]
    apart = first != np.arange(len(new))
    both = np.unique(np.concatenate([np.flatnonzero(apart), first[apart]]))
    classes.stated.left[new[both]], classes.stated.right[new[both]] = stated.left[both], stated.right[both]
    # Of a commutative application two renamings may use their variables in order, one with its inputs swapped.
    _, same, group = np.unique(classes.stated.at(new[both]).keys(), return_index=True, return_inverse=True)
    classes.same(new[both], new[both][same[group]])
    return classes


def independent(classes: Classes, nodes: np.ndarray, progress: Progress | None) -> list[Equation]:
    """Equations that connect all classes, level by level: those of more variables first, of which others are cases.

    What is under a node is smaller and connected before, so what is connected already follows from those kept.
    """
    found: list[Equation] = []
    variables = classes.table.first_use.count(classes.table.uses_of(classes.rows.at(nodes)))
    for level in range(1, classes.table.most + 1):
        for i, equation in enumerate(found):
            classes.apply(equation, level)
            if progress and i % 16 == 0:
                progress(f"follow at {level} operators", i, len(found))
        mine = np.flatnonzero((classes.level[nodes] == level) & (variables > 0))
        mine = mine[np.argsort(-variables[mine], kind="stable")]
        mine = mine[classes.roots(nodes[mine]) != classes.roots(classes.known_by[nodes[mine]])]
        for i, node in enumerate(nodes[mine].tolist()):
            if progress and i % 64 == 0:
                progress(f"keep at {level} operators", i, len(mine))
            if not classes.connected(node, int(classes.known_by[node])):
                found.append(classes.equation(node))
                classes.apply(found[-1], level)
    return found


def general(classes: Classes, found: list[Equation], progress: Progress | None) -> list[Equation]:
    """Without equations that follow from those of more variables: special cases are smaller and come before those."""
    classes.disconnect()
    uses = classes.table.uses_of(classes.rows.at(np.array([e.node for e in found], np.int64)))
    variables = classes.table.first_use.count(uses)
    kept: dict[int, Equation] = {}
    for i, place in enumerate(np.argsort(-variables, kind="stable").tolist()):
        if progress and i % 16 == 0:
            progress("drop special cases", i, len(found))
        equation = found[place]
        if not classes.connected(equation.node, equation.other):
            kept[place] = equation
            classes.apply(equation)
    return [kept[place] for place in sorted(kept)]
