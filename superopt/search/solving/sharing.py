"""How pieces share the time of a search: by what is at stake in them, of alike ones mostly the first."""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TypeAlias, TypeVar

from superopt.search.cutting.pieces import Piece
from superopt.search.solving.following import structure
from superopt.search.solving.solution import Terms
from superopt.search.strategies.found import Progress

T = TypeVar("T")

Groups: TypeAlias = Mapping[Terms, Sequence[Piece]]
"""The places of each distinct piece."""

FOLLOWING_SHARE = 0.2
"""Of what is at stake in a piece, what its time is by until another was searched that is alike and has more at stake:
what gained there is looked for in it.
"""


def of_kinds(starts: Mapping[Terms, float], groups: Groups) -> dict[Terms, float]:
    """What time is shared by before anything is known: what is at stake, with most of it for the first of pieces that
    are alike, as following it takes less than a search.
    """
    stakes, first = dict[Terms, float](), dict[Hashable, Terms]()
    for key in sorted(starts, key=lambda key: -starts[key]):
        kind = first.setdefault(kind_of(groups[key]), key)
        stakes[key] = starts[key] if kind is key else FOLLOWING_SHARE * starts[key]
        stakes[kind] += starts[key] - stakes[key]
    return stakes


def kind_of(places: Sequence[Piece]) -> Hashable:
    """What pieces have in common that are alike."""
    return structure(places[0].canonical.outputs)


def shared(stakes: Mapping[T, float], deadline: float, progress: Progress, doing: str) -> Iterator[tuple[T, float]]:
    """The seconds for each: time is shared by what is at stake, as it is known by then; what earlier ones leave goes to
    those that follow.
    """
    left = list(stakes)
    for i in range(len(stakes)):
        progress(doing, i / len(stakes))
        key = max(left, key=stakes.__getitem__)
        share = stakes[key] / (sum(stakes[k] for k in left) or 1.0)
        left.remove(key)
        yield key, 0.8 * share * (deadline - time.monotonic())
