"""The size of a graph's weights: what has to be kept in a file, so that the graph can run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from superopt.cost.kernels import Kernel, cut
from superopt.cost.sizes import bytes_of, concretize
from superopt.operators.layout import Expand
from superopt.term import Graph, Term


@dataclass(frozen=True)
class WeightsCost:
    """The bytes of all constants that a graph reads, each once. Constants made of others are kept in their place."""

    sizes: Mapping[str, int] = field(default_factory=dict)

    def cost(self, graph: Graph, most: float = math.inf) -> float:
        """Bytes. Raises `ShapeError` where `sizes` do not fit the graph."""
        graph = concretize(graph, self.sizes)
        return float(sum(map(bytes_of, _read(graph.runs) | _kept(graph.outputs))))

    def estimate(self, graph: Graph) -> float:
        """The same."""
        return self.cost(graph)

    def breakdown(self, graph: Graph) -> list[tuple[Kernel, float]]:
        """The kernels of a graph with the bytes that each reads: what several read counts for each."""
        kernels = cut(concretize(graph, self.sizes))
        return [(k, float(sum(map(bytes_of, _read(k.graph.runs))))) for k in kernels]


def _read(runs: tuple[Term, ...]) -> set[Term]:
    return _kept(tuple(i for term in runs for i in term.inputs))


def _kept(terms: tuple[Term, ...]) -> set[Term]:
    """The constants among some terms; of one that is only repeated, that which is."""
    found = set()
    for term in terms:
        while isinstance(term.operator, Expand):
            (term,) = term.inputs
        if term.constant:
            found.add(term)
    return found
