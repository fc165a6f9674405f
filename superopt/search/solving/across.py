"""Searching joined pieces, which span the cuts of a model: of those that are alike some, where these gain nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from superopt.errors import SuperoptError
from superopt.search.cutting.pieces import Piece
from superopt.search.solving.joined import Begun
from superopt.search.solving.searching import Search
from superopt.search.solving.sharing import Groups, kind_of, shared
from superopt.search.solving.solution import Terms
from superopt.search.strategies.found import ALIKE, EXHAUSTED, OUT_OF_TIME, VAIN, Progress, Solved

ENOUGH_IN_VAIN = 3
"""So many joined pieces that are alike are searched to the end; where none of them gains, the others, which have the
same operators, are not. Of a DenseNet's 59 joined pieces 45 are of one kind.
"""


def solve_joined(
    groups: Groups,
    known: Mapping[Terms, Solved],
    begun: Mapping[Terms, Begun],
    search: Search,
    deadline: float,
    progress: Progress,
) -> list[Solved]:
    """Search each distinct joined piece that is not known and that something is begun of, until the deadline; of alike
    ones some, where those gain nothing.
    """
    total, kinds = search.objective.total, _Kinds()
    solved = [known[key] for key in groups if key in known]
    for one in solved:
        kinds.learn(one)
    starts = {key: len(groups[key]) * b.start(total) for key, b in begun.items() if key not in known}
    for key, seconds in shared(starts, deadline, progress, "search across cuts"):
        if search.stopped:
            break
        if seconds <= 0.0 or kinds.are_vain(groups[key]):
            solved.append(begun[key].unsearched(groups[key], total, ALIKE if seconds > 0.0 else OUT_OF_TIME))
            if search.memory:
                search.memory.keep(solved[-1])
            continue
        with search.stoppable(), suppress(SuperoptError):  # it cannot be run, or not in time
            solved.append(search(groups[key], seconds, begun[key]))
            kinds.learn(solved[-1])
    return solved


@dataclass
class _Kinds:
    """Of each kind of pieces, how many were searched to the end and gained nothing, and which gained."""

    vain: Counter[Hashable] = field(default_factory=Counter)
    gained: set[Hashable] = field(default_factory=set)

    def learn(self, solved: Solved) -> None:
        """What a search came to tells of its kind; one whose graphs could not all be timed has not ended."""
        kind, outcome = kind_of(solved.places), solved.outcome
        if solved.gain > 1.0:
            self.gained.add(kind)
        self.vain[kind] += outcome.reason in (EXHAUSTED, VAIN) and outcome.is_timed

    def are_vain(self, places: Sequence[Piece]) -> bool:
        """Whether enough of a kind were searched, and gained nothing."""
        kind = kind_of(places)
        return self.vain[kind] >= ENOUGH_IN_VAIN and kind not in self.gained
