"""Analytic cost, where nothing can be measured: arithmetic or memory, whichever is slower, and a launch per kernel."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from superopt.cost.kernels import Kernel, cut
from superopt.cost.rates import CORE, Rates
from superopt.cost.sizes import concretize, sized_dim, width
from superopt.dim import Dim, product
from superopt.operators import Declared
from superopt.operators.layout import Expand
from superopt.term import Graph, Term, Type, subterms


@dataclass(frozen=True)
class AnalyticCost:
    """By rates that need only have the right order of magnitude.

    The same graph has the same cost on every machine, which makes searches reproducible.
    """

    rates: Rates = CORE
    sizes: Mapping[str, int] = field(default_factory=dict)
    _known: dict[tuple[Term, ...], float] = field(default_factory=dict, repr=False, compare=False)
    _alone: dict[Term, float] = field(default_factory=dict, repr=False, compare=False)

    def cost(self, graph: Graph, most: float = math.inf) -> float:
        """Seconds. Raises `ShapeError` where `sizes` do not fit the graph."""
        return math.fsum(seconds for _, seconds in self.breakdown(graph))

    def estimate(self, graph: Graph) -> float:
        """The same."""
        return self.cost(graph)

    def breakdown(self, graph: Graph) -> list[tuple[Kernel, float]]:
        """The kernels of a graph with their seconds."""
        return [(kernel, self.seconds(kernel)) for kernel in cut(concretize(graph, self.sizes))]

    def seconds(self, kernel: Kernel) -> float:
        """The seconds of one kernel."""
        key = kernel.graph.outputs
        if key not in self._known:
            self._known[key] = self._computed(kernel)
        return self._known[key]

    def forget_terms(self) -> None:
        """Forget the graphs that were asked about."""
        self._known.clear()
        self._alone.clear()

    def alone(self, term: Term) -> float:
        """The seconds of one operator that is fused with nothing; symbolic sizes count as in `sizes`."""
        if term.is_variable or term.constant or isinstance(term.operator, Expand):
            return 0.0
        if term not in self._alone:
            moved = sum(self._bytes(t.type) for t in (*term.inputs, term))
            self._alone[term] = self._seconds(self._flops(term), moved)
        return self._alone[term]

    def _computed(self, kernel: Kernel) -> float:
        if kernel.is_view:
            return self.rates.launch_s
        return self._seconds(*self.counted(kernel))

    def _seconds(self, flops: int, moved: int) -> float:
        return max(flops / self.rates.flops_per_s, moved / self.rates.bytes_per_s) + self.rates.launch_s

    def counted(self, kernel: Kernel) -> tuple[int, int]:
        """The floating-point operations of one kernel, and the bytes that it reads and writes."""
        (root,) = kernel.graph.outputs
        flops = sum(self._flops(term) for term in subterms(root) if not term.is_variable)
        return flops, sum(self._bytes(v.type) for v in (*kernel.graph.inputs, root))

    def _flops(self, term: Term) -> int:
        return self._number(own_flops(term))

    def _bytes(self, type_: Type) -> int:
        return self._number(product(type_.shape)) * width(type_.dtype)

    def _number(self, size: Dim) -> int:
        sized = sized_dim(size, self.sizes)
        assert isinstance(sized, int), f"{size} is still symbolic"
        return sized


def own_flops(term: Term) -> Dim:
    """The floating-point operations that a term adds to its inputs'."""
    op = term.operator
    if isinstance(op, Expand):
        return 0
    return op.flops(term.shape, *(i.shape for i in term.inputs)) if isinstance(op, Declared) else product(term.shape)
