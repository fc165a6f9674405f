"""What every cost has in common."""

from __future__ import annotations

import math
from typing import Protocol

from superopt.cost.kernels import Kernel
from superopt.term import Graph


class Cost(Protocol):
    """Gives the time of one inference of a graph."""

    def cost(self, graph: Graph, most: float = math.inf) -> float:
        """Seconds; infinite for a graph that cannot run, and for one that is found to take more than `most`.

        Raises `OutOfTime` past a deadline.
        """

    def estimate(self, graph: Graph) -> float:
        """What `cost` would say, by all that is known now; no kernel is measured for it."""

    def breakdown(self, graph: Graph) -> list[tuple[Kernel, float]]:
        """The kernels of the graph with the seconds of each alone; they add up to its cost, or to more."""
