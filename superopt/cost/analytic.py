"""Analytic cost, where nothing can be measured: arithmetic or memory, whichever is slower, and a launch per kernel."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from superopt.cost.kernels import Kernel, cut
from superopt.cost.sizes import concretize
from superopt.dim import Dim, product
from superopt.operators import Declared
from superopt.operators.layout import Expand, Reshape
from superopt.term import REAL, Graph, Term, Type, subterms


@dataclass(frozen=True)
class AnalyticCost:
    """Rates of one core of a current server processor; the defaults need only have the right order of magnitude.

    The same graph has the same cost on every machine, which makes searches reproducible.
    """

    flops_per_s: float = 1e11
    bytes_per_s: float = 1e10
    launch_s: float = 2e-6
    sizes: Mapping[str, int] = field(default_factory=dict)

    def cost(self, graph: Graph) -> float:
        """Seconds. Raises `ShapeError` where `sizes` do not fit the graph."""
        return math.fsum(seconds for _, seconds in self.breakdown(graph))

    def breakdown(self, graph: Graph) -> list[tuple[Kernel, float]]:
        """The kernels of a graph with their seconds."""
        return [(kernel, self._seconds(kernel)) for kernel in cut(concretize(graph, self.sizes))]

    def remaining(self, graph: Graph) -> int:
        """Nothing is ever measured."""
        return 0

    def _seconds(self, kernel: Kernel) -> float:
        (root,) = kernel.graph.outputs
        if isinstance(root.operator, Reshape):
            return self.launch_s  # the runtime gives the same memory another shape
        flops = sum(_flops(term) for term in subterms(root) if not term.is_variable)
        moved = sum(_bytes(v.type) for v in (*kernel.graph.inputs, root))
        return max(flops / self.flops_per_s, moved / self.bytes_per_s) + self.launch_s


def _flops(term: Term) -> int:
    op = term.operator
    if isinstance(op, Expand):
        return 0
    if isinstance(op, Declared):
        return _number(op.flops(term.shape, *(i.shape for i in term.inputs)))
    return _number(product(term.shape))


def _bytes(type_: Type) -> int:
    try:
        width = np.dtype("float32" if type_.dtype == REAL else type_.dtype).itemsize
    except TypeError:  # bfloat16 and smaller types are not numpy's
        width = 2
    return _number(product(type_.shape)) * width


def _number(size: Dim) -> int:
    assert isinstance(size, int), f"{size} is still symbolic"
    return size
