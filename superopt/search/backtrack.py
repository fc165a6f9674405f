"""Cost-based backtracking (TASO, SOSP 2019): always rewrite the cheapest graph not yet rewritten, and keep what costs
less than α times the best.
"""

from __future__ import annotations

import heapq
import itertools
import math
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from superopt.cost.model import Cost
from superopt.errors import OutOfTime, SuperoptError
from superopt.search.rewrites import Known, Matching, Rewrite, applied
from superopt.term import Graph, Term

TOLD_APART = 0.005
"""Costs that differ by less than this share of the start's are taken as equal."""


@dataclass(frozen=True)
class Applied:
    """A rewrite that was applied: its name, how it is known to be right, and the term before and after."""

    name: str
    known: Known
    before: Term
    after: Term


@dataclass(frozen=True)
class Found:
    """A graph equal to the start, what led to it, and its predicted seconds."""

    graph: Graph
    cost: float
    steps: tuple[Applied, ...]


@dataclass
class Outcome:
    """The cheapest graphs found, cheapest first; how many were seen; and why the search ended."""

    start: Found
    best: list[Found] = field(default_factory=list)
    seen: int = 0
    reason: str = "exhausted"


@dataclass(frozen=True)
class Limits:
    """When to stop: graphs rewritten, those of them in a row that gain nothing, a time of `time.monotonic`, how far
    above the best to go on; and how many results to keep.
    """

    expanded: int = 60
    patience: int = 12
    deadline: float = math.inf
    alpha: float = 1.05
    keep: int = 2


def backtrack(graph: Graph, rewrites: Sequence[Rewrite], cost: Cost, limits: Limits) -> Outcome:
    """Search from a graph. Raises `OutOfTime` only where not even the start could be costed."""
    start = Found(graph, cost.cost(graph), ())
    outcome = Outcome(start, [start], 1)
    known: set[tuple[Term, ...]] = {graph.outputs}
    order = itertools.count()
    queue: list[tuple[float, int, Found]] = [(start.cost, next(order), start)]
    best, vain = start.cost, 0
    matching, narrow = Matching(rewrites), dict[Term, Term]()
    for _ in range(limits.expanded):
        if not queue:
            break
        _, _, here = heapq.heappop(queue)
        if here.cost > limits.alpha * best:
            break
        vain += 1
        for found in _neighbours(here, matching, narrow, known, cost, limits, outcome):
            if found.cost < best - TOLD_APART * start.cost:
                vain = 0
            best = min(best, found.cost)
            if found.cost <= limits.alpha * best:
                heapq.heappush(queue, (found.cost, next(order), found))
                _keep(outcome, found, limits.keep, cost)
        if outcome.reason == "out of time":
            break
        if vain >= limits.patience:
            outcome.reason = "no gain for a while"
            break
    else:
        outcome.reason = "limit of graphs"
    return outcome


def _neighbours(
    here: Found,
    matching: Matching,
    narrow: dict[Term, Term],
    known: set[tuple[Term, ...]],
    cost: Cost,
    limits: Limits,
    outcome: Outcome,
) -> list[Found]:
    """Every graph one rewrite away that was not seen before, with its cost."""
    found: list[Found] = []
    for rewrite, new in matching.applications(here.graph):
        if time.monotonic() > limits.deadline:
            outcome.reason = "out of time"
            return found
        try:
            graph = applied(here.graph, new, narrow)
            if graph.outputs in known:
                continue
            known.add(graph.outputs)
            outcome.seen += 1
            seconds = cost.cost(graph)
        except OutOfTime:
            outcome.reason = "out of time"
            return found
        except SuperoptError:  # a graph that the types above the place do not accept, or that ONNX cannot write
            continue
        if math.isfinite(seconds):
            steps = tuple(Applied(rewrite.name, rewrite.known, b, a) for b, a in new.items())
            found.append(Found(graph, seconds, (*here.steps, *steps)))
    return found


def _keep(outcome: Outcome, found: Found, count: int, cost: Cost) -> None:
    """Keep the cheapest; of those that cost the same within what measurements tell, the ones with the fewest steps.

    Of graphs that are made of the same kernels one is enough.
    """
    same = next((f for f in outcome.best if f.cost == found.cost and _kernels(f, cost) == _kernels(found, cost)), None)
    if same is not None and len(same.steps) <= len(found.steps):
        return
    told_apart = TOLD_APART * outcome.start.cost or 1.0
    outcome.best[:] = [*(f for f in outcome.best if f is not same), found]
    outcome.best.sort(key=lambda f: (math.floor(f.cost / told_apart), len(f.steps), f.cost))
    del outcome.best[count:]


def _kernels(found: Found, cost: Cost) -> Counter[tuple[Term, ...]]:
    return Counter(kernel.graph.outputs for kernel, _ in cost.breakdown(found.graph))
