"""Measured cost: the sum of what a graph's kernels take on the runtime, each measured once and kept in the table.

A sum of kernels only ranks: what runs alone finds its inputs in the cache and its layout converted around it. The best
few graphs are timed whole.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from superopt.cost.alone import Alone
from superopt.cost.bench import Bench
from superopt.cost.blocks import SHARES, is_repeated
from superopt.cost.estimate import Estimates
from superopt.cost.kernels import Kernel, cut, forget_terms
from superopt.cost.layouts import ALONE, Place, kept_bytes, touched
from superopt.cost.sizes import bytes_of
from superopt.cost.turns import Turns
from superopt.operators.pointwise import Relu
from superopt.term import REAL, Graph, Term, variable, variables

_IMAGE = variable("x", (1, 64, 56, 56), REAL)
"""By which it is measured what layouts and point-wise operators cost: one of a common size."""


class MeasuredCost:
    """Costs on a bench: what its table lacks is measured when it is asked for.

    `around` are the bytes that a model goes through beside a piece of it (see `whole.around`); `alone` has the times of
    its kernels.
    """

    def __init__(self, bench: Bench, around: int = 0) -> None:
        self.bench, self.around = bench, around
        self._streamed = around if bench.runtime.streams_weights else 0
        self.alone, self._turns = Alone(bench, self._streamed), Turns(bench)
        self._known: dict[tuple[Term, ...], float | None] = {}
        self._plain: set[Term] = set()
        self._estimates = Estimates(bench.runtime.rates)
        self._layout_s: float | None = None

    def cost(
        self, graph: Graph, most: float = math.inf, place: Place = ALONE, blocks: dict[Term, bool] | None = None
    ) -> float:
        """Seconds in its place; infinite where a kernel cannot run, and where what is measured first passes `most`.

        `blocks` remembers which terms stand in blocks of channels in this place. Raises `OutOfTime` past the deadline
        if measuring is needed.
        """
        graph, blocks = self._sized(graph), {} if blocks is None else blocks
        kernels = cut(graph)
        saved = self._saved(graph, kernels, place, blocks)
        known = [self._look_up(kernel) for kernel in kernels]
        unknown = [kernel for kernel, alone_s in zip(kernels, known, strict=True) if alone_s is None]
        total = math.fsum(
            self._in_place(kernel, alone_s, blocks)
            for kernel, alone_s in zip(kernels, known, strict=True)
            if alone_s is not None
        )
        # Those that may take longest first: where the graph is too costly, that is known soonest.
        for kernel in sorted(unknown, key=self._estimates.seconds, reverse=True):
            if total > most + saved:
                return math.inf
            total += self._in_place(kernel, self._seconds(kernel), blocks)
        return max(math.fsum(self._in_place(k, self._seconds(k), blocks) for k in kernels) - saved, 0.0)

    def estimate(self, graph: Graph, place: Place = ALONE, blocks: dict[Term, bool] | None = None) -> float:
        """Seconds in its place, where kernels that were not measured take what others of their kind let expect."""
        graph, blocks = self._sized(graph), {} if blocks is None else blocks
        kernels = cut(graph)
        saved, total = self._saved(graph, kernels, place, blocks), 0.0
        for kernel in kernels:
            alone_s = self._look_up(kernel)
            total += self._in_place(kernel, self._estimates.seconds(kernel) if alone_s is None else alone_s, blocks)
        return max(total - saved, 0.0)

    def learn_streaming(self) -> None:
        """Measure a point-wise kernel, by which others are estimated: a model may have none, or just slow ones.

        Raises `OutOfTime` past the deadline.
        """
        (kernel,) = cut(Graph((_IMAGE,), (Relu()(_IMAGE),)))
        self._seconds(kernel)

    def forget_terms(self) -> None:
        """Forget the graphs that were asked about, as a search ends; the table remembers what their kernels take."""
        self._known.clear()
        self._plain.clear()
        self._estimates.forget_terms()
        forget_terms()

    def breakdown(self, graph: Graph) -> list[tuple[Kernel, float]]:
        """The kernels of a graph with their seconds. Raises `OutOfTime`."""
        return [(kernel, self._seconds(kernel)) for kernel in cut(self._sized(graph))]

    def _sized(self, graph: Graph) -> Graph:
        return self.bench.sized(graph, self._plain)

    def _saved(self, graph: Graph, kernels: Sequence[Kernel], place: Place, blocks: dict[Term, bool]) -> float:
        """The seconds that layouts save which are kept from one kernel to the next; `blocks` is filled in."""
        kept = kept_bytes(graph, kernels, place, blocks) if self.bench.runtime.keeps_blocks else 0
        return kept * self.layout_s_per_byte() if kept else 0.0

    def _in_place(self, kernel: Kernel, alone_s: float, blocks: Mapping[Term, bool]) -> float:
        """What a kernel takes among others that takes so long alone. In blocks of channels some are other kernels, and
        an image whose places are repeated is moved.
        """
        root = kernel.root
        if not (self.bench.runtime.keeps_blocks and blocks.get(root)):
            return alone_s
        seconds = SHARES.get(type(root.operator), 1.0) * alone_s
        return min(seconds, bytes_of(root) * self.layout_s_per_byte()) if is_repeated(root) else seconds

    def _look_up(self, kernel: Kernel) -> float | None:
        key = kernel.graph.outputs
        if key in self._known:
            return self._known[key]
        known = self._known[key] = self.alone.known(kernel)
        if known is not None:
            self._estimates.learn(kernel, known)
        return known

    def _seconds(self, kernel: Kernel) -> float:
        known = self._look_up(kernel)
        if known is None:
            known = self._known[kernel.graph.outputs] = self.alone.seconds(kernel)
            if known < math.inf:
                self._estimates.learn(kernel, known)
        return known

    def layout_s_per_byte(self) -> float:
        """What it takes to lay out an image for a convolution, or back: what each of two more does not add to one."""
        if self._layout_s is None:
            one_s, three_s = self._turns.seconds([_touched_often(_IMAGE, count) for count in (1, 3)])
            both_s = max(one_s - (three_s - one_s) / 2, 0.0)
            self._layout_s = both_s / 2 / bytes_of(_IMAGE)
        return self._layout_s

    def whole(self, original: Graph, candidate: Graph) -> tuple[float, float]:
        """The seconds of two graphs, each timed whole among the rest of a model, in turns, and kept like kernels.

        Raises what emitting does, `RuntimeFailed`, and `OutOfTime` past the deadline.
        """
        return self._turns.in_model(original, candidate, self.around, self._streamed)


@dataclass(frozen=True)
class CostInPlace:
    """The cost of graphs that stand in a place."""

    base: MeasuredCost
    place: Place
    _blocks: dict[Term, bool] = field(default_factory=dict, repr=False, compare=False)

    def cost(self, graph: Graph, most: float = math.inf) -> float:
        """As that of the base."""
        return self.base.cost(graph, most, self.place, self._blocks)

    def estimate(self, graph: Graph) -> float:
        """As that of the base."""
        return self.base.estimate(graph, self.place, self._blocks)

    def breakdown(self, graph: Graph) -> list[tuple[Kernel, float]]:
        """As that of the base."""
        return self.base.breakdown(graph)


def _touched_often(image: Term, count: int) -> Graph:
    term = image
    for i in range(count):
        term = touched(term, f"k{i}")
    return Graph(tuple(variables(term)), (term,))
