"""Measured cost: the sum of what a graph's kernels take on the runtime, each measured once and kept in the table.

A sum of kernels only ranks: what runs alone finds its inputs in the cache and its layout converted around it. The best
few graphs are timed whole.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from superopt.cost.child import CRASHED, UNENDING, Child, Unending
from superopt.cost.domains import unfolded
from superopt.cost.estimate import Estimates
from superopt.cost.indices import indexed
from superopt.cost.kernels import Kernel, cut, forget_terms
from superopt.cost.layouts import ALONE, Place, kept_bytes, touched
from superopt.cost.liveness import PeakCost
from superopt.cost.runtime import KERNEL, Runtime, RuntimeFailed, Timing
from superopt.cost.sizes import bytes_of, concretize
from superopt.cost.steps import is_normal_of_sum
from superopt.cost.streamed import MOST_OF_PIECES, copied, copies
from superopt.cost.table import WHOLE, Table, measuring
from superopt.cost.timed import run_alone, time_alone, time_in_turns
from superopt.cost.whole import Undeclared, Unwritable, fingerprint, written
from superopt.errors import OutOfTime, SuperoptError, UsageError
from superopt.onnx_io import DrawnWeights, needed_opset
from superopt.operators.declare import concrete
from superopt.operators.pointwise import Add, Relu
from superopt.term import REAL, Graph, Term, variable, variables

T = TypeVar("T")

LONGEST_S = 30.0
"""What has not been timed by then is taken as never ending."""
MOST_HELD = 10**8
"""Pieces whose values take more bytes at a time are timed one by one: two sessions hold twice as much."""
_UNDECLARED = " of sizes that are not declared"
_CHAIN, _ROUNDS = 32, 4
_IMAGE = variable("x", (1, 64, 56, 56), REAL)
"""By which it is measured what layouts and point-wise operators cost: one of a common size."""


class MeasuredCost:
    """Costs on a runtime. What the table lacks is measured when it is asked for, one process at a time.

    `sizes` gives symbolic dimensions; `deadline` is a time of `time.monotonic`, past which nothing more is measured.
    Kernels run in a process of their own, the `child`: `unrunnable` says, by signature, why those have infinite cost
    that could not be run, crashed the runtime, or did not end; that is not kept beyond this object. `unwritable` says
    why nothing could be written to be timed, if that was so. `measured` counts kernels, `waited_s` the seconds in which
    others measured.
    """

    def __init__(
        self,
        runtime: Runtime,
        table: Table,
        opset: int,
        sizes: Mapping[str, int] | None = None,
        deadline: float = math.inf,
        lock_directory: Path | None = None,
        child: Child | None = None,
        highest: int = 0,
        around: int = 0,
        loses_sizes: bool = False,
        weights: DrawnWeights | None = None,
    ) -> None:
        """`highest` is the opset that a graph may have where it needs a newer one; `around` are the bytes that a model
        goes through beside a piece of it (see `whole.around`); `loses_sizes` says that the runtime does not know in
        the model the sizes that are symbolic, and fuses less: so it is in whole pieces then; `weights` are what
        models are timed over.
        """
        self.runtime, self.table, self.opset, self.sizes = runtime, table, opset, dict(sizes or {})
        self.highest, self.deadline, self.lock_directory = highest, deadline, lock_directory
        self.around, self.measured, self.waited_s = around, 0, 0.0
        self._streamed = around if runtime.streams_weights else 0
        self.loses_sizes = loses_sizes
        self.child, self.weights = child or Child(), weights or DrawnWeights()
        self.unrunnable: dict[str, str] = {}
        self._deadly_whole: dict[str, str] = {}
        self.unwritable = ""
        self._key = runtime.key
        self._known: dict[tuple[Term, ...], float | None] = {}
        self._plain: set[Term] = set()
        self._estimates = Estimates(runtime.rates)
        self._overhead_s: tuple[float, float] | None = None
        self._layout_s: float | None = None

    def cost(
        self, graph: Graph, most: float = math.inf, place: Place = ALONE, blocks: dict[Term, bool] | None = None
    ) -> float:
        """Seconds in its place; infinite where a kernel cannot run, and where what is measured first passes `most`.

        `blocks` remembers which terms stand in blocks of channels in this place. Raises `OutOfTime` past the deadline
        if measuring is needed.
        """
        graph = self._sized(graph)
        kernels = cut(graph)
        saved = self._saved(graph, kernels, place, blocks)
        known = [self._look_up(kernel) for kernel in kernels]
        unknown = [kernel for kernel, seconds in zip(kernels, known, strict=True) if seconds is None]
        total = math.fsum(seconds for seconds in known if seconds is not None)
        # Those that may take longest first: where the graph is too costly, that is known soonest.
        for kernel in sorted(unknown, key=self._estimates.seconds, reverse=True):
            if total > most + saved:
                return math.inf
            total += self._seconds(kernel)
        return max(math.fsum(map(self._seconds, kernels)) - saved, 0.0)

    def estimate(self, graph: Graph, place: Place = ALONE, blocks: dict[Term, bool] | None = None) -> float:
        """Seconds in its place, where kernels that were not measured take what others of their kind let expect."""
        graph = self._sized(graph)
        kernels = cut(graph)
        total = 0.0
        for kernel in kernels:
            seconds = self._look_up(kernel)
            total += self._estimates.seconds(kernel) if seconds is None else seconds
        return max(total - self._saved(graph, kernels, place, blocks), 0.0)

    def demand_runs(self) -> None:
        """Raise `UsageError` where the runtime runs nothing at all: what it needs it may only load, and miss, now."""
        with self._written([_additions(1)]) as (model,):
            try:
                self.child.call(LONGEST_S, run_alone, self.runtime, model)
            except RuntimeFailed as error:
                raise UsageError(f"runtime {self._key.runtime} cannot be used here: {error}") from None

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

    @property
    def deadly(self) -> list[str]:
        """The signatures of kernels that crashed the runtime, or did not end."""
        return [signature for signature, why in self.unrunnable.items() if why.startswith((CRASHED, UNENDING))]

    def breakdown(self, graph: Graph) -> list[tuple[Kernel, float]]:
        """The kernels of a graph with their seconds. Raises `OutOfTime`."""
        return [(kernel, self._seconds(kernel)) for kernel in cut(self._sized(graph))]

    def _sized(self, graph: Graph) -> Graph:
        return unfolded(concretize(graph, self.sizes), self._plain)

    def _saved(self, graph: Graph, kernels: Sequence[Kernel], place: Place, blocks: dict[Term, bool] | None) -> float:
        """The seconds that layouts save which are kept from one kernel to the next."""
        kept = kept_bytes(graph, kernels, place, blocks) if self.runtime.keeps_blocks else 0
        return kept * self.layout_s_per_byte() if kept else 0.0

    def _look_up(self, kernel: Kernel) -> float | None:
        key = kernel.graph.outputs
        if key in self._known:
            return self._known[key]
        timing = self.table.get(self._key, self._as_timed(kernel)[0])
        known = self._known[key] = None if timing is None else timing.seconds
        if known is not None:
            self._estimates.learn(kernel, known)
        return known

    def _seconds(self, kernel: Kernel) -> float:
        known = self._look_up(kernel)
        if known is None:
            known = self._known[kernel.graph.outputs] = self._measure(kernel)
            if known < math.inf:
                self._estimates.learn(kernel, known)
        return known

    def _as_timed(self, kernel: Kernel) -> tuple[str, int]:
        """The text by which the table knows a kernel as it is timed for this model, and how many of it are together."""
        count = copies(kernel.graph, self._streamed)
        signature = kernel.signature + (_UNDECLARED if self._lost(kernel.graph) else "") + self._held_back(kernel.graph)
        return signature if count == 1 else f"({count} of {signature})", count

    def _held_back(self, *graphs: Graph) -> str:
        """What tells graphs that need a newer opset than the model may have: there they run otherwise, or not."""
        most = max(self.opset, self.highest)
        needed = max(needed_opset(graph.outputs, (), self.opset) for graph in graphs)
        return f" in opset {most}" if needed > most else ""

    def _measure(self, kernel: Kernel) -> float:
        signature, count = self._as_timed(kernel)
        if (known := self.table.get(self._key, signature)) is not None:
            return known.seconds
        with self._lane(signature):
            known = self.table.get(self._key, signature)
            if known is not None:
                return known.seconds
            call_s, node_s = self._overhead()
            try:
                # Alone a view would be a copy, of the model's input to its output.
                whole = Timing(call_s + node_s, 0.0, _CHAIN) if kernel.is_view else self._time(kernel.timed, count)
            except OutOfTime:
                raise
            except SuperoptError as error:
                self.unrunnable[signature] = str(error)
                return math.inf
            timing = Timing(max((whole.seconds - call_s) / count, node_s), whole.spread / count, whole.runs)
            self.table.put(self._key, signature, timing)
            self.measured += 1
            return timing.seconds

    @contextmanager
    def _lane(self, what: str) -> Iterator[None]:
        """Within it nobody else measures; another process may have measured the same while this one waited.

        Raises `OutOfTime` where the deadline passes before.
        """
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise OutOfTime(f"no time is left to measure {what}")
        start = time.monotonic()
        with ExitStack() as held:
            try:
                held.enter_context(measuring(self.lock_directory, left))
            finally:
                self.waited_s += time.monotonic() - start
            yield

    def _overhead(self) -> tuple[float, float]:
        """What a call costs without any kernel, and the least that a kernel costs, in seconds.

        The one is a call of one addition, less the other: what each of many more adds to it.
        """
        if self._overhead_s is None:
            rounds = [[self._time(_additions(n)).seconds for n in (1, _CHAIN + 1)] for _ in range(_ROUNDS)]
            one, many = map(min, zip(*rounds, strict=True))  # all kernels are told by these, so they are worth a while
            node = max(many - one, 0.0) / _CHAIN
            self._overhead_s = max(one - node, 0.0), node
        return self._overhead_s

    def layout_s_per_byte(self) -> float:
        """What it takes to lay out an image for a convolution, or back: what each of two more does not add to one."""
        if self._layout_s is None:
            one_s, three_s = self._in_turns([_touched_often(_IMAGE, count) for count in (1, 3)], around=0)
            both_s = max(one_s - (three_s - one_s) / 2, 0.0)
            self._layout_s = both_s / 2 / bytes_of(_IMAGE)
        return self._layout_s

    def _time(self, graph: Graph, count: int = 1) -> Timing:
        """What so many of a graph take together."""
        graph = copied(graph, count)
        axes = self._lost(graph)
        draw = replace(KERNEL, shapes=_shapes(graph, axes), below=indexed([graph]))
        with self._written([graph], axes) as (model,):
            return self._apart("a kernel", time_alone, self.runtime, model, draw)

    def _lost(self, graph: Graph) -> dict[str, tuple[int, ...]]:
        """The axes of a kernel's inputs whose sizes the runtime does not know in the model, where it would fuse it.

        They are all, as kernels do not tell which were numbers there.
        """
        if not self.loses_sizes or not any(map(is_normal_of_sum, graph.runs)):
            return {}
        return {v.label: tuple(range(v.type.rank)) for v in graph.inputs if not v.constant}

    @contextmanager
    def _written(self, graphs: Sequence[Graph], undeclared: Undeclared | None = None) -> Iterator[list[Path]]:
        try:
            with written(graphs, self.opset, self.weights, self.highest, undeclared) as models:
                yield models
        except Unwritable as error:
            self.unwritable = str(error)
            raise

    def _apart(self, what: str, function: Callable[..., T], *arguments: object) -> T:
        """What a function gives in the process for measuring. Raises what it does, and `OutOfTime` at the deadline."""
        left = self.deadline - time.monotonic()
        try:
            return self.child.call(min(LONGEST_S, max(left, 0.0)), function, *arguments)
        except Unending:
            if left > LONGEST_S:
                raise
            raise OutOfTime(f"no time is left to measure {what}") from None

    def whole(self, original: Graph, candidate: Graph) -> tuple[float, float]:
        """The seconds of two graphs, each timed whole among the rest of a model, in turns, and kept like kernels.

        Where it takes longest to read weights, beside copies. Raises what emitting does, `RuntimeFailed`, and
        `OutOfTime` past the deadline.
        """
        count = min(copies(self._sized(original), self._streamed), MOST_OF_PIECES)
        before_s, after_s = self._in_turns([copied(graph, count) for graph in (original, candidate)], self.around)
        return before_s / count, after_s / count

    def _in_turns(self, given: Sequence[Graph], around: int) -> tuple[float, float]:
        graphs = [unfolded(concretize(graph, self.sizes)) for graph in given]
        prints = [fingerprint(graph) for graph in graphs]
        axes = self._undeclared(given) if around else {}
        place = (f" within {around}" if around else "") + (_UNDECLARED if axes else "")
        place += self._held_back(*graphs)
        signatures = [f"{WHOLE}{own} beside {other}{place} in both orders)" for own, other in (prints, prints[::-1])]
        known = [self.table.get(self._key, signature) for signature in signatures]
        if None in known:
            with self._lane("whole pieces"):
                known = [self.table.get(self._key, signature) for signature in signatures]
                if None in known:
                    draw = replace(KERNEL, shapes=_shapes(graphs[0], axes), below=indexed(graphs))
                    with self._written(graphs, axes) as models:
                        much = max(map(PeakCost().cost, graphs)) > MOST_HELD
                        asked = self.runtime, models, around, draw, much
                        known = list(self._whole_apart(signatures[0], *asked))
                    for signature, timing in zip(signatures, known, strict=True):
                        assert timing is not None
                        self.table.put(self._key, signature, timing)
        before, after = known
        assert before is not None
        assert after is not None
        return before.seconds, after.seconds

    def _whole_apart(self, signature: str, *asked: object) -> tuple[Timing, ...]:
        """The timings of whole pieces. What crashed, or did not end, is not asked for again."""
        if signature in self._deadly_whole:
            raise RuntimeFailed(self._deadly_whole[signature])
        try:
            return self._apart("whole pieces", time_in_turns, *asked)
        except RuntimeFailed as error:
            self._deadly_whole[signature] = str(error)
            raise

    def _undeclared(self, given: Sequence[Graph]) -> dict[str, tuple[int, ...]]:
        """The axes of inputs whose sizes the runtime does not know in the model."""
        leaves = variables(*(o for graph in given for o in graph.outputs)) if self.loses_sizes else ()
        axes = {v.label: tuple(a for a, d in enumerate(v.shape) if not isinstance(d, int)) for v in leaves}
        return {label: of_one for label, of_one in axes.items() if of_one}


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


def _shapes(graph: Graph, axes: Undeclared) -> dict[str, tuple[int, ...]]:
    """Those of inputs whose model does not tell all of them."""
    return {v.label: concrete(v.shape, "input") for v in graph.inputs if v.label in axes}


def _touched_often(image: Term, count: int) -> Graph:
    term = image
    for i in range(count):
        term = touched(term, f"k{i}")
    return Graph(tuple(variables(term)), (term,))


def _additions(count: int) -> Graph:
    x, y = variable("x", (1,), "float32"), variable("y", (1,), "float32")
    total = x
    for _ in range(count):
        total = Add()(total, y)
    return Graph((x, y), (total,))
