"""The seconds of an inference, as the objective of a search: sums rank, and the best graphs are timed whole."""

from __future__ import annotations

import math
from collections.abc import Iterable

from superopt.cost.layouts import Place, between
from superopt.cost.measured import CostInPlace, MeasuredCost
from superopt.cost.model import Cost
from superopt.errors import SuperoptError
from superopt.search.found import Found, Outcome, lightest
from superopt.search.objective import Objective
from superopt.term import Graph

LEAST_PROMISED = 1.01
"""A graph is timed whole where its sum promises at least this gain, and no less than another gained already."""


WORTH_KEEPING = 1.005
"""A graph replaces its piece where, timed whole, it gains at least this: with what its sum promised, two measurements
agree that it gains, and the whole model decides.
"""

NEAR_PROMISED, WORTH_UNPROMISED = 0.9, 1.02
"""A graph of less work by count is timed whole where its sum promises this share of what was gained already; without a
promise it has to gain this much.
"""

WORTH_JOINING = 1.03
"""A graph of a joined piece is timed whole where its sum promises at least this over what its parts gained."""

LEAST_LEFT = 0.01
"""Of what the start takes, what is left at least: sums and whole times miss each other by a few per cent."""

LARGE_WEIGHTS, WORTH_UNTIMED = 2**24, 1.2
"""A piece with more numbers in its weights is not timed whole, for the memory of two sessions of it, and their time.
It is replaced where its sum promises at least this, and the whole model decides."""

AS_PROMISED = 0.93
"""A whole graph that reaches this share of its predicted gain is taken without trying others: sums promise 5 to 10 %
too much, and graphs of one sum gain the same within 2 % or so.
"""


class Latency(Objective):
    """Seconds of an inference."""

    better = "faster"
    worth_trying = WORTH_JOINING  # sums promise too much rather than too little

    def cost(self, place: Place) -> Cost:
        """Sums of kernels, in a place."""
        return CostInPlace(self.machine, place)

    def seconds(self, costs: Iterable[float]) -> float:
        """Their sum."""
        return sum(costs)

    def tries(self, outcome: Outcome) -> bool:
        """Whether graphs of the piece are timed whole."""
        return weights(outcome.start.graph) <= LARGE_WEIGHTS

    def choose(self, outcome: Outcome, place: Place) -> tuple[Found, float, int]:
        """Of the cheapest graphs by sums of kernels, one that is faster as a whole; the start where none is.

        The first that gained nearly what its sum promised is taken; else the one that gains most. That of least work by
        count is timed also where its sum promises little: each kernel is timed at a moment of its own, and on a shared
        machine those differ by more than many gains. The gain stands beside it, and how many could not be timed.
        """
        best, gain, untried, settled = outcome.start, 1.0, 0, False
        if not self.tries(outcome):
            promised = outcome.start.cost / outcome.best[0].cost
            return (outcome.best[0], promised, 0) if promised >= WORTH_UNTIMED else (best, gain, 0)
        light = lightest(outcome.best, outcome.start, self.machine)
        for found in outcome.best:
            promised = outcome.start.cost / found.cost if found.cost else math.inf
            is_promised = found is not outcome.start and promised >= max(LEAST_PROMISED, gain)
            is_light = found is light and promised >= NEAR_PROMISED * gain
            if not is_light and (settled or not is_promised):
                continue
            try:
                ratio = _gain(outcome.start, found, self.machine, place)
            except SuperoptError:  # it cannot be written or run as a whole, or no time is left
                untried += 1
                continue
            if ratio > max(gain, WORTH_KEEPING if is_promised else WORTH_UNPROMISED):
                best, gain = found, ratio
            settled = settled or (best is found and ratio >= AS_PROMISED * promised)
        return best, gain, untried


def _gain(start: Found, found: Found, cost: MeasuredCost, place: Place) -> float:
    """How many times faster a graph is than the start, each timed whole in its place.

    What stands around it is in both times, so their difference is compared with what is the start's own of the time:
    by sums of kernels, which find all in the caches, and so are too small. Raises what `MeasuredCost.whole` does.
    """
    before, after = (between(graph, place) for graph in (start.graph, found.graph))
    before_s, after_s = cost.whole(before, after)
    alone = before.outputs == start.graph.outputs
    share = 1.0 if alone else min(start.cost / cost.estimate(before), 1.0)
    own_s = max(share * before_s, start.cost)
    return own_s / max(own_s - (before_s - after_s), LEAST_LEFT * own_s)


def weights(graph: Graph) -> int:
    """How many numbers the constants of a graph hold; symbolic sizes count as one."""
    shapes = [[d for d in v.shape if isinstance(d, int)] for v in graph.inputs if v.constant]
    return sum(math.prod(shape) for shape in shapes)
