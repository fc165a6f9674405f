"""Pieces that were solved, joined: the search goes on from what it found for each, with what spans the cuts between.

So a joined piece gains what its parts gain, and more where a rewrite spans a cut. What applies to one part alone was
tried when that was solved, or another that is alike, and is not tried again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from superopt.search.cutting.pieces import Piece, renamed
from superopt.search.rewriting.matching import Matching
from superopt.search.solving.solution import Terms
from superopt.search.strategies.found import OUT_OF_TIME, Applied, Found, Outcome, Replaced, Solved
from superopt.term import Graph, Term

Part: TypeAlias = tuple[Piece, Solved]
"""A piece, and what was found for those like it."""


Total: TypeAlias = Callable[[Iterable[float]], float]
"""What costs of several pieces come to together."""


JOINED_SHARE, JOINED_LEAST = 0.33, 0.05
"""What the searches of joined pieces may take: of the time that pieces took, or of the limit, where these are
remembered. What gains by sums is timed beyond that.
"""


@dataclass(frozen=True)
class Begun:
    """A joined piece, and the same with what was found for its `parts` in place, over its canonical variables.

    `within` says for each part what each of its canonical variables is there.
    """

    piece: Piece
    parts: tuple[Part, ...]
    graph: Graph
    steps: tuple[Applied, ...]
    within: tuple[Replaced, ...]

    def tried(self, matching: Matching) -> Iterator[Replaced]:
        """What may be rewritten within one of the parts."""
        for (_, solved), new in zip(self.parts, self.within, strict=True):
            for application in matching.applications(solved.winner.graph):
                old, made = zip(*application.new.items(), strict=True)
                yield dict(zip(renamed(old, new), renamed(made, new), strict=True))

    def spans(self, matching: Matching) -> bool:
        """Whether there is more to rewrite in the whole piece as it stands than in its parts."""
        parts = Counter[str]()
        for part, _ in self.parts:
            parts += _applied(matching, part.canonical)
        return not _applied(matching, self.piece.canonical) <= parts

    def start(self, total: Total) -> float:
        """What the parts cost together as they were."""
        return total(solved.outcome.start.cost for _, solved in self.parts)

    def gain(self, total: Total) -> float:
        """How many times less the parts cost together as they were found."""
        return self.start(total) / total(solved.outcome.start.cost / solved.gain for _, solved in self.parts)

    def solved(self, places: Sequence[Piece], outcome: Outcome, winner: Found, gain: float, total: Total) -> Solved:
        """What a search from here on found, which gains so much more than the parts, as found for the whole piece."""
        start = Found(self.piece.canonical, self.start(total), (), measured=True)
        whole, gained = start, 1.0
        if winner is not outcome.start:
            whole = replace(winner, steps=(*self.steps, *winner.steps))
            gained = gain * self.gain(total)
        outcome = Outcome(start, [whole], outcome.seen, outcome.reason, lost=outcome.untried + outcome.lost)
        return Solved(tuple(places), outcome, whole, gained)

    def unsearched(self, places: Sequence[Piece], total: Total, reason: str = OUT_OF_TIME) -> Solved:
        """What is known of the whole piece where no time is left for it, or it is not searched for another reason."""
        start = Found(self.graph, self.start(total), ())
        return self.solved(places, Outcome(start, [start], 0, reason), start, 1.0, total)


def _applied(matching: Matching, graph: Graph) -> Counter[str]:
    """How often each rewrite applies to a graph, by name."""
    return Counter(application.template.rewrite.name for application in matching.applications(graph))


def begun(piece: Piece, parts: Sequence[Part], values: Mapping[str, Term]) -> Begun:
    """A joined piece where its parts, in their order, were solved; `values` are the variables of the program."""
    canonical, made = piece.renaming, dict[Term, Term]()
    steps: list[Applied] = []
    within: list[Replaced] = []
    for part, solved in parts:
        new = {own: made.get(old, canonical.get(old, old)) for old, own in part.renaming.items()}
        new |= _shown_otherwise(piece, part, new)
        within.append(new)
        for step in solved.winner.steps:
            before, after = renamed((step.before, step.after), new)
            steps.append(replace(step, before=before, after=after))
        outputs = renamed(solved.winner.graph.outputs, new)
        made |= {values[name]: output for name, output in zip(part.names, outputs, strict=True)}
    graph = Graph(tuple(canonical.values()), tuple(made[values[name]] for name in piece.names))
    return Begun(piece, tuple(parts), graph, tuple(steps), tuple(within))


def _shown_otherwise(piece: Piece, part: Piece, new: Mapping[Term, Term]) -> dict[Term, Term]:
    """What a part shows of tables that the joined piece makes; and those of its variables that this one shows."""
    ours, theirs = part.renaming, piece.renaming
    made = {whole: new[ours[v]] for v, whole in part.shown.items() if v not in piece.shown}
    found = dict(zip(renamed(tuple(made), ours), made.values(), strict=True))
    other = {v: whole for v, whole in piece.shown.items() if v in ours and v not in part.shown}
    return found | dict(zip((ours[v] for v in other), renamed(tuple(other.values()), theirs), strict=True))


def begun_of(
    groups: Mapping[Terms, Sequence[Piece]], solved: Sequence[Solved], values: Mapping[str, Term]
) -> dict[Terms, Begun]:
    """What is begun of joined pieces, where all parts were solved."""
    parts = sorted(((place, s) for s in solved for place in s.places), key=lambda part: part[0].steps.start)
    starts = [place.steps.start for place, _ in parts]
    found = {}
    for key, (piece, *_) in groups.items():
        own = parts[bisect_left(starts, piece.steps.start) : bisect_left(starts, piece.steps.stop)]
        if sum(len(place.steps) for place, _ in own) == len(piece.steps):
            found[key] = begun(piece, own, values)
    return found


def solved_as_pieces(
    joined: Mapping[Terms, Sequence[Piece]], groups: Mapping[Terms, Sequence[Piece]], solved: Sequence[Solved]
) -> dict[Terms, Solved]:
    """What is known of joined pieces because they are like others, which were solved; no graph was seen for that."""
    found = {place.steps.start: s for s in solved for place in s.places}
    places = {key: found.get(groups[key][0].steps.start) for key in joined if key in groups}
    return {
        key: replace(s, places=tuple(joined[key]), outcome=replace(s.outcome, seen=0))
        for key, s in places.items()
        if s is not None
    }
