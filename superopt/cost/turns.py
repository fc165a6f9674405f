"""Two graphs timed whole, in turns, as pieces of a model are: what sums of kernels only rank, this decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from superopt.cost.bench import UNDECLARED, Bench, told
from superopt.cost.indices import indexed
from superopt.cost.inputs import KERNEL
from superopt.cost.liveness import PeakCost
from superopt.cost.streamed import MOST_OF_PIECES, copied, copies
from superopt.cost.table import WHOLE
from superopt.cost.timed import time_in_turns
from superopt.cost.timing import Timing
from superopt.cost.whole import fingerprint
from superopt.errors import RuntimeFailed
from superopt.term import Graph, variables

MOST_HELD = 10**8
"""Pieces whose values take more bytes at a time are timed one by one: two sessions hold twice as much."""


class Turns:
    """What graphs take beside one another on a bench, each pair measured once and kept in the table."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._deadly: dict[str, str] = {}

    def in_model(self, original: Graph, candidate: Graph, around: int, streamed: int) -> tuple[float, float]:
        """The seconds of two graphs among the rest of a model, through so many bytes of which it goes beside them.

        Where weights of a model of `streamed` bytes take longest to be read, beside copies. Raises what emitting does,
        `RuntimeFailed`, and `OutOfTime` past the deadline.
        """
        count = min(copies(self._bench.sized(original), streamed), MOST_OF_PIECES)
        before_s, after_s = self.seconds([copied(graph, count) for graph in (original, candidate)], around)
        return before_s / count, after_s / count

    def seconds(self, given: Sequence[Graph], around: int = 0) -> tuple[float, float]:
        """Those of two graphs; alone where nothing is around. Raises as `in_model` does."""
        bench = self._bench
        graphs = [bench.sized(graph) for graph in given]
        prints = [fingerprint(graph) for graph in graphs]
        axes = self._undeclared(given) if around else {}
        place = (f" within {around}" if around else "") + (UNDECLARED if axes else "") + bench.held_back(*graphs)
        signatures = [f"{WHOLE}{own} beside {other}{place} in both orders)" for own, other in (prints, prints[::-1])]
        if (known := self._known(signatures)) is None:
            with bench.lane("whole pieces"):
                if (known := self._known(signatures)) is None:
                    known = self._timed(signatures[0], graphs, axes, around)
                    for signature, timing in zip(signatures, known, strict=True):
                        bench.keep(signature, timing)
        before, after = known
        return before.seconds, after.seconds

    def _known(self, signatures: Sequence[str]) -> tuple[Timing, ...] | None:
        known = tuple(t for t in map(self._bench.known, signatures) if t is not None)
        return known if len(known) == len(signatures) else None

    def _timed(
        self, signature: str, graphs: Sequence[Graph], axes: dict[str, tuple[int, ...]], around: int
    ) -> tuple[Timing, ...]:
        """The timings of two graphs. What crashed, or did not end, is not asked for again."""
        if signature in self._deadly:
            raise RuntimeFailed(self._deadly[signature])
        draw = replace(KERNEL, shapes=told(graphs[0], axes), below=indexed(graphs))
        much = max(map(PeakCost().cost, graphs)) > MOST_HELD
        with self._bench.written(graphs, axes) as models:
            try:
                return self._bench.apart("whole pieces", time_in_turns, models, around, draw, much)
            except RuntimeFailed as error:
                self._deadly[signature] = str(error)
                raise

    def _undeclared(self, given: Sequence[Graph]) -> dict[str, tuple[int, ...]]:
        """The axes of inputs whose sizes the runtime does not know in the model."""
        leaves = variables(*(o for graph in given for o in graph.outputs)) if self._bench.loses_sizes else ()
        axes = {v.label: tuple(a for a, d in enumerate(v.shape) if not isinstance(d, int)) for v in leaves}
        return {label: of_one for label, of_one in axes.items() if of_one}
