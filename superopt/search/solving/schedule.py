"""Which of the places that exclude each other are rewritten: those that gain most together.

Joined pieces overlap what they are made of, and each other. Choosing among intervals with weights is done in one pass
(weighted interval scheduling; Kleinberg and Tardos 2005, chapter 6).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace

from superopt.search.cutting.pieces import Piece
from superopt.search.strategies.found import Solved


def best_apart(spans: Sequence[tuple[range, float]]) -> list[int]:
    """The numbers of spans that do not overlap, whose weights have the largest sum; in the order in which they end.

    Spans are different. Without some of those that are not chosen, the same are.
    """
    order = sorted(range(len(spans)), key=lambda i: (spans[i][0].stop, spans[i][0].start))
    stops = [spans[i][0].stop for i in order]
    before = [bisect_right(stops, spans[i][0].start, hi=n) for n, i in enumerate(order)]
    best = [0.0]
    for n, i in enumerate(order):
        best.append(max(best[n], best[before[n]] + spans[i][1]))
    chosen: list[int] = []
    n = len(order)
    while n:
        taken = best[n] > best[n - 1]
        if taken:
            chosen.append(order[n - 1])
        n = before[n - 1] if taken else n - 1
    return chosen[::-1]


def scheduled(solved: Sequence[Solved], joined: Sequence[Solved]) -> list[Solved]:
    """What was solved, at the places where it is chosen: what gains most together, and each piece that is in none of
    that, as it stands. So each step is at one place.
    """
    gaining = [(place.steps, s.saved) for s in (*solved, *joined) if s.gain > 1.0 for place in s.places]
    taken = [gaining[i][0] for i in best_apart(gaining)]
    covered = {number for steps in taken for number in steps}
    own = [_at(s, [p for p in s.places if p.steps in taken or p.steps.start not in covered]) for s in solved]
    return [s for s in (*own, *(_at(s, [p for p in s.places if p.steps in taken]) for s in joined)) if s.places]


def _at(solved: Solved, places: Sequence[Piece]) -> Solved:
    return replace(solved, places=tuple(places))
