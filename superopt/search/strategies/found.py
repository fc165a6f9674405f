"""What a search gives and takes: graphs found, with the steps that led to them; its limits; what a strategy is."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias

from superopt.cost.analytic import AnalyticCost
from superopt.cost.model import Cost
from superopt.cost.sizes import bytes_of
from superopt.errors import OutOfTime, SuperoptError
from superopt.search.cutting.pieces import Piece
from superopt.search.rewriting.matching import Matching
from superopt.search.rewriting.rewrites import Known
from superopt.term import Graph, Term

Replaced: TypeAlias = Mapping[Term, Term]
"""Terms, and what each is replaced by."""

Progress = Callable[[str, float], None]
"""Told what is being done, and how much of it is done (0 to 1)."""

EACH = 0.01
"""What an operator that runs counts beside a graph's seconds, of the start's: of graphs that take about the same time,
those come first that consist of less, since most ways to a gain lead through what can be folded.
"""

TOLD_APART = 0.005
"""Costs that differ by less than this share of the start's are taken as equal."""


_COUNTED = AnalyticCost()


def forget_terms() -> None:
    """Forget the graphs whose operations and bytes were counted."""
    _COUNTED.forget_terms()


EXHAUSTED, VAIN, LIMIT, ALIKE = "exhausted", "no gain for a while", "limit of graphs", "as in other pieces"
TOO_DEEP = "too many operators below each other"
"""Why a search ended by itself."""

INTERRUPTED, OUT_OF_TIME = "interrupted", "out of time"
"""Why a search ended that somebody stopped, or its deadline: what it had found by then is kept."""


@dataclass(frozen=True)
class Applied:
    """A rewrite that was applied: its name, how it is known to be right and by which laws, the term before and after.

    One that replaces several terms together is several of these, one after the other.
    """

    name: str
    known: Known
    by: tuple[str, ...]
    before: Term
    after: Term


@dataclass(frozen=True)
class Found:
    """A graph equal to the start, what led to it, and its seconds: estimated, or predicted from measured kernels."""

    graph: Graph
    cost: float
    steps: tuple[Applied, ...]
    measured: bool = False


@dataclass
class Outcome:
    """The cheapest graphs found, cheapest first; how many were seen; why the search ended; and what rewrites made, each
    time that one did, whether that was seen before or not. Of the cheapest, so many are `untried`: they could not be
    timed whole, and so many that are no more among them are `lost`; what is chosen was `promised`, where that was all.
    `moved` remembers how many bytes graphs move.
    """

    start: Found
    best: list[Found] = field(default_factory=list)
    seen: int = 0
    reason: str = EXHAUSTED
    candidates: int = 0
    untried: int = 0
    lost: int = 0
    promised: bool = False
    moved: dict[Graph, int] = field(default_factory=dict, repr=False, compare=False)

    @property
    def is_timed(self) -> bool:
        """Whether all could be timed that were to be."""
        return not self.untried and not self.lost


@dataclass(frozen=True)
class Solved:
    """A distinct piece: where it stands, what the search found, and the winner with its gain (1 for none): measured, or
    where it could not be or need not, by sums.

    `remembered` says that it was found by an earlier search.
    """

    places: tuple[Piece, ...]
    outcome: Outcome
    winner: Found
    gain: float
    remembered: bool = False

    @property
    def at_stake(self) -> float:
        """What it takes as it stands, at all of its places."""
        return len(self.places) * self.outcome.start.cost

    @property
    def saved(self) -> float:
        """By how much what is to be lessened is less, at each place."""
        return self.outcome.start.cost * (1.0 - 1.0 / self.gain)


def taken_as_they_stand(solved: Iterable[Solved]) -> float:
    """What pieces take as they stand, at all of their places: seconds, by sums of kernels, or what else is lessened."""
    return sum(s.at_stake for s in solved)


def expected_gain(solved: Iterable[Solved], total: Callable[[Iterable[float]], float]) -> float:
    """How many times less the whole should take, by what pieces gain at their places."""
    solved = list(solved)
    before = total(s.outcome.start.cost for s in solved for _ in s.places)
    after = total(s.outcome.start.cost / s.gain for s in solved for _ in s.places)
    return before / after if after else math.inf


ENCOURAGED = 3
"""How many times longer a search goes on that has gained something."""


SIMPLIFYING_SHARE = 0.2
"""What of a search's time its start may be simplified in."""


@dataclass(frozen=True)
class Limits:
    """When to stop: graphs rewritten, those of them in a row that gain nothing, a time of `time.monotonic`, how far
    above the best to go on; and how many results to keep, beside a few others: some dozen are told apart by kernels.
    """

    expanded: int = 2000
    patience: int = 20
    deadline: float = math.inf
    alpha: float = 1.15
    keep: int = 12

    @property
    def simplifying(self) -> float:
        """Until when the start is simplified: a part of the time."""
        now = time.monotonic()
        return now + SIMPLIFYING_SHARE * (self.deadline - now)

    def enough(self, vain: int, best: float, start: float) -> bool:
        """Whether so many graphs in a row gained nothing that none of the next will: where something was gained
        before, there is more to be found.
        """
        return vain >= self.patience * (ENCOURAGED if best < start * (1.0 - TOLD_APART) else 1)


class Strategy(Protocol):
    """A way of searching. The same arguments give the same outcome, unless the deadline passes, or somebody stops it.

    What `tried` replaces in the graph was looked at before, and nothing there is that simplifies it: what else
    there is to do is asked for. Raises `OutOfTime` only where not even the start could be costed.
    """

    def __call__(
        self, graph: Graph, matching: Matching, cost: Cost, limits: Limits, tried: Sequence[Replaced] | None = None
    ) -> Outcome: ...


def priority(found: Found, start: Found) -> float:
    """By what graphs are gone on with: the least first. More operators than at the start count no more than those."""
    count = min(len(graph.runs) for graph in (found.graph, start.graph))
    return found.cost + EACH * start.cost * count


def measured(found: Found, cost: Cost, most: float) -> Found | None:
    """A graph with its predicted seconds; None where these are more than `most`, or nothing can write or run it.

    Raises `OutOfTime`.
    """
    if found.measured:
        return found
    try:
        seconds = cost.cost(found.graph, most)
    except OutOfTime:
        raise
    except SuperoptError:
        return None
    return replace(found, cost=seconds, measured=True) if seconds <= most else None


def keep(outcome: Outcome, found: Found, count: int, cost: Cost) -> None:
    """Keep the cheapest; of those that cost the same within what measurements tell, the ones with the fewest steps.

    Beside them the next that moves less memory than each of them: kernels that run alone find all in the caches, so
    what moves much may gain by their sum alone. And the `lightest`, whose work is counted: each kernel is timed at a
    moment of its own. Of graphs that are made of the same kernels one is enough.
    """
    same = next((f for f in outcome.best if f.cost == found.cost and _kernels(f, cost) == _kernels(found, cost)), None)
    if same is not None and len(same.steps) <= len(found.steps):
        return
    told_apart = TOLD_APART * outcome.start.cost or 1.0
    best = [*(f for f in outcome.best if f is not same), found]
    best.sort(key=lambda f: (math.floor(f.cost / told_apart), len(f.steps), f.cost))
    outcome.best[:], others = best[:count], best[count:]
    least = min((_moved(f, cost, outcome.moved) for f in outcome.best), default=0) if others else 0
    outcome.best += [f for f in others if _moved(f, cost, outcome.moved) < least][:1]
    light = lightest(best, outcome.start, cost)
    outcome.best += [light] if light is not None and light not in outcome.best else []


def keep_also(outcome: Outcome, others: Sequence[Found], cost: Cost) -> None:
    """Keep others as well, behind what is kept, where they are made of other kernels."""
    known = [_kernels(found, cost) for found in outcome.best]
    outcome.best += [found for found in others if _kernels(found, cost) not in known]


def lightest(graphs: Sequence[Found], start: Found, cost: Cost) -> Found | None:
    """Of the graphs that run no operators but the start's, so that like is counted against like, the one of least work;
    None where that is no less than the start's.
    """
    kinds = _names(start)
    alike = [found for found in graphs if _names(found) <= kinds]
    least = min(alike, key=lambda found: _counted(found, cost), default=start)
    return least if _counted(least, cost) < (1.0 - TOLD_APART) * _counted(start, cost) else None


def _names(found: Found) -> set[str]:
    return {term.operator.name for term in found.graph.runs}


def _counted(found: Found, cost: Cost) -> float:
    """Seconds by counts of operations and bytes, the same on every machine."""
    return sum(map(_COUNTED.seconds, (kernel for kernel, _ in cost.breakdown(found.graph))))


def _moved(found: Found, cost: Cost, known: dict[Graph, int]) -> int:
    """The bytes that the kernels of a graph read and write, if they are not known already."""
    if found.graph not in known:
        kernels = [kernel.graph for kernel, _ in cost.breakdown(found.graph) if not kernel.is_view]
        known[found.graph] = sum(bytes_of(term) for graph in kernels for term in (*graph.inputs, *graph.outputs))
    return known[found.graph]


def _kernels(found: Found, cost: Cost) -> Counter[tuple[Term, ...]]:
    return Counter(kernel.graph.outputs for kernel, _ in cost.breakdown(found.graph))
