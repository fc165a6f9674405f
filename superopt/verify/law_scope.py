"""What laws are checked in: a finite part of all ranks, axes and permutations."""

from __future__ import annotations

import itertools

from superopt.operators.declare import CATALOGUE
from superopt.operators.laws.collected import Law, Scope, laws_in


def wide_scope() -> Scope:
    """What the laws are checked in: a finite part of all the scopes that there are.

    Every operator; ranks 0 to 4; all permutations of up to three axes and six of four (the two layouts of images,
    swaps of neighbours, the reverse); all broadcasts to up to three axes and five to four; all re-shapes of up to four
    axes; reductions along any axes of up to three; an element taken twice along each of three axes. So each law is
    there at its ranks and along its axes.
    """
    reduced = ("sum", "mean", "largest", "smallest")
    images = {(0, 1, 2, 3), (0, 2, 3, 1), (0, 3, 1, 2), (1, 0, 2, 3), (0, 1, 3, 2), (3, 2, 1, 0)}
    spreads = {((), 4), ((1,), 4), ((0, 2), 4), ((2, 3), 4), ((0, 1, 2, 3), 4)}
    return Scope(
        frozenset(CATALOGUE),
        frozenset(range(5)),
        frozenset(p for rank in range(4) for p in itertools.permutations(range(rank))) | images,
        frozenset((axes, r) for r in range(4) for n in range(r + 1) for axes in itertools.combinations(range(r), n))
        | spreads,
        frozenset((a, b) for a in range(5) for b in range(5)),
        frozenset((name, axes, rank) for name in reduced for rank in (1, 2, 3) for axes in _subsets(rank)),
        frozenset({("avgpool", (1,)), *(("take", (axis, (0, 0))) for axis in range(3))}),
    )


def _subsets(rank: int) -> list[tuple[int, ...]]:
    return [axes for n in range(1, rank + 1) for axes in itertools.combinations(range(rank), n)]


def families() -> dict[str, list[Law]]:
    """The laws of the wide scope by name: of each its instances at all ranks, axes and permutations."""
    found: dict[str, list[Law]] = {}
    for law in laws_in(wide_scope()):
        found.setdefault(law.name, []).append(law)
    return found
