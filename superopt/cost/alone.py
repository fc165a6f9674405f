"""Kernels timed alone, each once for a model's makeup, and kept in the table: what sums are made of."""

from __future__ import annotations

import math
from dataclasses import replace

from superopt.cost.bench import LONGEST_S, UNDECLARED, Bench, told
from superopt.cost.child import CRASHED, UNENDING
from superopt.cost.indices import indexed
from superopt.cost.inputs import KERNEL
from superopt.cost.kernels import Kernel
from superopt.cost.steps import is_normal_of_sum
from superopt.cost.streamed import copied, copies
from superopt.cost.timed import run_alone, time_alone
from superopt.cost.timing import Timing
from superopt.errors import OutOfTime, RuntimeFailed, SuperoptError, UsageError
from superopt.operators.normalize import Softmax
from superopt.operators.pointwise import Add
from superopt.term import Graph, variable

_CHAIN, _ROUNDS = 32, 4


class Alone:
    """What kernels take on a bench, beside a model's own weights of `streamed` bytes, if reading those takes longest.

    `unrunnable` says, by signature, why those kernels have infinite cost that could not be run, crashed the runtime,
    or did not end; that is not kept beyond this object. `measured` counts kernels.
    """

    def __init__(self, bench: Bench, streamed: int) -> None:
        self.measured = 0
        self.unrunnable: dict[str, str] = {}
        self._bench, self._streamed = bench, streamed
        self._overhead_s: tuple[float, float] | None = None

    @property
    def deadly(self) -> list[str]:
        """The signatures of kernels that crashed the runtime, or did not end."""
        return [signature for signature, why in self.unrunnable.items() if why.startswith((CRASHED, UNENDING))]

    def demand_runs(self) -> None:
        """Raise `UsageError` where the runtime runs nothing at all: what it needs it may only load, and miss, now."""
        runtime = self._bench.runtime
        with self._bench.written([_additions(1)]) as (model,):
            try:
                self._bench.child.call(LONGEST_S, run_alone, runtime, model)
            except RuntimeFailed as error:
                raise UsageError(f"runtime {runtime.key.runtime} cannot be used here: {error}") from None

    def known(self, kernel: Kernel) -> float | None:
        """The seconds that the table has."""
        timing = self._bench.known(self._as_timed(kernel)[0])
        return None if timing is None else timing.seconds

    def seconds(self, kernel: Kernel) -> float:
        """Those of a kernel, measured if need be; infinite where it cannot run. Raises `OutOfTime`."""
        signature, count = self._as_timed(kernel)
        if (known := self._bench.known(signature)) is not None:
            return known.seconds
        with self._bench.lane(signature):
            if (known := self._bench.known(signature)) is not None:
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
            self._bench.keep(signature, timing)
            self.measured += 1
            return timing.seconds

    def _as_timed(self, kernel: Kernel) -> tuple[str, int]:
        """The text by which the table knows a kernel as it is timed for this model, and how many of it are together."""
        count = copies(kernel.graph, self._streamed)
        undeclared = UNDECLARED if self._lost(kernel.graph) else ""
        signature = kernel.signature + undeclared + self._bench.held_back(kernel.graph)
        return signature if count == 1 else f"({count} of {signature})", count

    def _overhead(self) -> tuple[float, float]:
        """What a call costs without any kernel, and the least that a kernel costs, in seconds.

        The one is a call of one addition, less the other: what each of many more adds to it, or of many softmaxes,
        where additions that follow each other are one kernel.
        """
        if self._overhead_s is None:
            call = _additions(1)
            is_fused = self._bench.runtime.fuses_elements
            one, many = map(_softmaxes if is_fused else _additions, (1, _CHAIN + 1))
            graphs, rounds = ((call, one, many), _ROUNDS // 2) if is_fused else ((one, many), _ROUNDS)
            times = [[self._time(graph).seconds for graph in graphs] for _ in range(rounds)]
            least = [*map(min, zip(*times, strict=True))]  # all kernels are told by these, so they are worth a while
            call_s, one_s, many_s = least[0], least[-2], least[-1]
            node_s = max(many_s - one_s, 0.0) / _CHAIN
            self._overhead_s = max(call_s - node_s, 0.0), node_s
        return self._overhead_s

    def _time(self, graph: Graph, count: int = 1) -> Timing:
        """What so many of a graph take together."""
        graph = copied(graph, count)
        axes = self._lost(graph)
        draw = replace(KERNEL, shapes=told(graph, axes), below=indexed([graph]))
        with self._bench.written([graph], axes) as (model,):
            return self._bench.apart("a kernel", time_alone, model, draw)

    def _lost(self, graph: Graph) -> dict[str, tuple[int, ...]]:
        """The axes of a kernel's inputs whose sizes the runtime does not know in the model, where it would fuse it.

        They are all, as kernels do not tell which were numbers there.
        """
        if not self._bench.loses_sizes or not any(map(is_normal_of_sum, graph.runs)):
            return {}
        return {v.label: tuple(range(v.type.rank)) for v in graph.inputs if not v.constant}


def _softmaxes(count: int) -> Graph:
    row = variable("x", (1, 8), "float32")
    result = row
    for _ in range(count):
        result = Softmax(1)(result)
    return Graph((row,), (result,))


def _additions(count: int) -> Graph:
    x, y = variable("x", (1,), "float32"), variable("y", (1,), "float32")
    total = x
    for _ in range(count):
        total = Add()(total, y)
    return Graph((x, y), (total,))
