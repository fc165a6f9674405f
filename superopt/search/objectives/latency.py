"""The seconds of an inference, as the objective of a search: sums rank, and the best graphs are timed whole."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable

from superopt.cost.layouts import Place, between
from superopt.cost.measured import CostInPlace, MeasuredCost
from superopt.cost.model import Cost
from superopt.errors import OutOfTime, SuperoptError
from superopt.search.objectives.objective import Objective
from superopt.search.objectives.promises import LEAST_LEFT, Promises, promise
from superopt.search.strategies.found import Found, Outcome, lightest
from superopt.term import Graph

LEAST_PROMISED = 1.01
"""A sum promises a gain where it is at least this."""

LEAST_UNPROMISED, WORTH_UNPROMISED = 0.97, 1.02
"""A graph whose sum promises nothing, but this at least, may be timed whole too, since sums miss by some per cent. It
has to gain this much.
"""

WORTH_KEEPING, FEW, WORTH_OF_MANY = 1.005, 2, 1.01
"""A graph whose sum promises a gain replaces its piece where, timed whole, it gains at least this: two measurements
agree that it gains, and the whole model decides. Of more than a few that were timed one gains more by chance.
"""

TIED, MOST_TIED = 0.95, 2
"""So many graphs whose gains are this share of the best one's at least are timed beside it, which tells them apart
where times beside the original, at moments of their own, do not.
"""

SAME = 0.01
"""Of two that are timed beside each other, this share of the time is within what one timing tells: identical pieces of
50 to 300 µs come to 0.3 to 1.9 % apart. What takes fewer rewrites is taken then.
"""

LEAST_LIGHT = 0.9
"""A graph of less work by count is timed whole where its sum promises this share of what was gained already."""

WORTH_JOINING = 1.03
"""A graph of a joined piece is timed whole where its sum promises at least this over what its parts gained."""

LARGE_WEIGHTS, WORTH_UNTIMED = 2**24, 1.2
"""A piece with more numbers in its weights is not timed whole, for the memory of two sessions of it, and their time.
It is replaced where its sum promises at least this, and the whole model decides."""

WORTH_LATE = 1.5
"""A piece none of whose graphs could be timed for want of time is replaced where its sum promises at least this, too:
sums miss by a fifth."""

MOST_TIMED, LATE_TIMED, UNPROMISED_TIMED = 6, 2, 2
"""So many graphs of a piece are timed whole, or tried to, at most: where some promise a gain, and of these where the
time for the piece is over and none has gained; and where none does. Each takes a third of a second or more.
"""


class Latency(Objective):
    """Seconds of an inference."""

    better = "faster"
    worth_trying = WORTH_JOINING  # sums promise too much rather than too little
    times_whole = True

    def cost(self, place: Place) -> Cost:
        """Sums of kernels, in a place."""
        return CostInPlace(self.machine, place)

    def seconds(self, costs: Iterable[float]) -> float:
        """Their sum."""
        return sum(costs)

    def tries(self, outcome: Outcome) -> bool:
        """Whether graphs of the piece are timed whole."""
        return weights(outcome.start.graph) <= LARGE_WEIGHTS

    def choose(self, outcome: Outcome, place: Place, until: float = math.inf) -> tuple[Found, float, int]:
        """Of the cheapest graphs by sums of kernels, the one that gains most as a whole, of those that were timed so;
        the start where none gains. The gain stands beside it, and how many could not be timed.

        Which are timed is by what sums promise, and by what whole times say of these. That of least work by count is
        timed also where its sum promises little: each kernel is timed at a moment of its own, and on a shared machine
        those differ by more than many gains.
        """
        start = outcome.start
        if not self.tries(outcome):
            promised = promise(start, outcome.best[0])
            return (outcome.best[0], promised, 0) if promised >= WORTH_UNTIMED else (start, 1.0, 0)
        others = [f for f in outcome.best if f.graph.outputs != start.graph.outputs]
        graphs = [f for f in others if promise(start, f) >= LEAST_UNPROMISED]
        has_promise = any(promise(start, f) >= LEAST_PROMISED for f in graphs)
        late_most, most = (LATE_TIMED, MOST_TIMED) if has_promise else (0, UNPROMISED_TIMED)
        tried, promises = _Tried(start, place, self.machine), Promises(start, graphs, self.machine)
        while len(tried.graphs) < most and (found := promises.foremost(tried.gain)) is not None:
            is_enough = tried.gain > 1.0 or len(tried.graphs) >= late_most
            if is_enough and time.monotonic() >= until:
                tried.untimed += 1
                break
            promises.tell(found, tried.timed(found))
        light = lightest(others, start, self.machine)
        if light is not None and light not in tried.graphs and promise(start, light) >= LEAST_LIGHT * tried.gain:
            tried.timed(light)
        tried.settle(until)
        if tried.is_late and (promised := promise(start, outcome.best[0])) >= WORTH_LATE:
            outcome.promised = True
            return outcome.best[0], promised, tried.untimed
        return tried.best, tried.gain, tried.untimed


class _Tried:
    """The graphs of a piece that were timed whole, or were to be: which gains most, and how many were not."""

    def __init__(self, start: Found, place: Place, cost: MeasuredCost) -> None:
        self._start, self._place, self._cost = start, place, cost
        self.best, self.gain, self.untimed, self._failed = start, 1.0, 0, False
        self.graphs: list[Found] = []
        self._gains: list[tuple[float, Found]] = []

    @property
    def is_late(self) -> bool:
        """Whether of none it is told what it gains, as no time was left for any."""
        return self.untimed > 0 and not self._gains and not self._failed

    def timed(self, found: Found) -> float | None:
        """What a graph gains, None where that cannot be told. It is the best where it gains as much as it has to."""
        self.graphs.append(found)
        try:
            ratio = _gain(self._start, found, self._cost, self._place)
        except SuperoptError as error:  # it cannot be written or run as a whole, or no time is left
            self._failed |= not isinstance(error, OutOfTime)
            self.untimed += 1
            return None
        self._gains.append((ratio, found))
        least = WORTH_KEEPING if len(self.graphs) <= FEW else WORTH_OF_MANY
        if promise(self._start, found) < LEAST_PROMISED:
            least = WORTH_UNPROMISED
        if ratio > max(self.gain, least):
            self.best, self.gain = found, ratio
        return ratio

    def settle(self, until: float) -> None:
        """Times those that gain about as much as the best beside it, and takes the faster one each time, or the simpler
        one where both take the same.
        """
        if self.best is self._start:
            return
        tied = [(ratio, found) for ratio, found in self._gains if found is not self.best and ratio >= TIED * self.gain]
        for _, found in sorted(tied, key=lambda each: -each[0])[:MOST_TIED]:
            if time.monotonic() >= until:
                return
            best, other = (between(each.graph, self._place) for each in (self.best, found))
            try:
                best_s, other_s = self._cost.whole(best, other)
            except SuperoptError:  # no time is left: each could be run beside the original
                return
            if _is_preferred(found, other_s, self.best, best_s):
                self.best = found


def _is_preferred(found: Found, found_s: float, best: Found, best_s: float) -> bool:
    """Whether a graph is faster than the best one, or takes the same and fewer rewrites."""
    if abs(found_s - best_s) > SAME * best_s:
        return found_s < best_s
    return (len(found.steps), found_s) < (len(best.steps), best_s)


def _gain(start: Found, found: Found, cost: MeasuredCost, place: Place) -> float:
    """How many times faster a graph is than the start, each timed whole in its place.

    What stands around it is in both times, so their difference is compared with what is the start's own of the time:
    by sums of kernels, most of which find all in the caches, and so are too small. Raises what `MeasuredCost.whole`
    does.
    """
    before, after = (between(graph, place) for graph in (start.graph, found.graph))
    before_s, after_s = cost.whole(before, after)
    if before.outputs == start.graph.outputs:
        return before_s / max(after_s, LEAST_LEFT * before_s)
    share = min(start.cost / cost.estimate(before), 1.0)
    own_s = max(share * before_s, start.cost)
    return own_s / max(own_s - (before_s - after_s), LEAST_LEFT * own_s)


def weights(graph: Graph) -> int:
    """How many numbers the constants of a graph hold; symbolic sizes count as one."""
    shapes = [[d for d in v.shape if isinstance(d, int)] for v in graph.inputs if v.constant]
    return sum(math.prod(shape) for shape in shapes)
