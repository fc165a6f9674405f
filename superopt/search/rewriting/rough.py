"""What terms take, roughly: by which a search tells what leaves less to compute, before anything is measured."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from superopt.cost.analytic import AnalyticCost
from superopt.term import Graph, Term, running


class Rough:
    """Rough seconds, each operator by itself, where symbols have some sizes (and else 1); remembered by term."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self._sizes = dict(sizes)
        self._cost = AnalyticCost(sizes=self._sizes)

    def forget_terms(self) -> None:
        """Forget what was seen of terms."""
        self._cost = AnalyticCost(sizes=self._sizes)

    def alone(self, term: Term) -> float:
        """Those of one operator."""
        return self._cost.alone(term)

    def each(self, roots: Sequence[Term]) -> dict[Term, float]:
        """The terms that running some takes, with the seconds of each that takes any."""
        return {t: s for t in running(*roots) if (s := self._cost.alone(t))}

    def whole(self, graph: Graph) -> float:
        """Those of all that runs in a graph."""
        return math.fsum(map(self._cost.alone, graph.runs))
