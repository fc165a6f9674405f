"""What every cost has in common."""

from __future__ import annotations

from typing import Protocol

from superopt.cost.kernels import Kernel
from superopt.term import Graph


class Cost(Protocol):
    """Gives the time of one inference of a graph."""

    def cost(self, graph: Graph) -> float:
        """Seconds; infinite for a graph that cannot run. Raises `OutOfTime` past a deadline."""

    def breakdown(self, graph: Graph) -> list[tuple[Kernel, float]]:
        """The kernels of the graph with the seconds of each; they add up to its cost."""

    def remaining(self, graph: Graph) -> int:
        """How many kernels must still be measured before the cost is known."""
