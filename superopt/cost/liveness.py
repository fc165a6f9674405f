"""The most memory that activations take at a time, by liveness: from when a value is made until it was last read.

As runtimes do it, what gives memory another shape takes none, and what is applied to each element alone is written over
an input that nothing reads any more. Weights are not counted, nor what kernels need while they run.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from superopt.cost.kernels import Kernel, cut
from superopt.cost.sizes import bytes_of, concretize
from superopt.onnx_io import Program
from superopt.operators import Declared
from superopt.operators.layout import Reshape
from superopt.operators.normalize import BatchNorm
from superopt.operators.rows import Rows
from superopt.term import Graph, Term, running

V = TypeVar("V", bound=Hashable)


@dataclass(frozen=True)
class Execution(Generic[V]):
    """What a runtime does as one: the values it reads, and those it makes, with their bytes.

    A *view* gives the first of what it reads another shape. One *in place* may write over what it is the last to read.
    """

    reads: Sequence[V]
    makes: Mapping[V, int]
    view: bool = False
    in_place: bool = False


def peak_bytes(executions: Sequence[Execution[V]], given: Mapping[V, int], kept: Collection[V]) -> int:
    """The most bytes that are alive at a time where these run one after the other.

    `given` are values that are alive at the start, until they were last read, and `kept` those that stay. What is read
    and is neither given nor made is not counted.
    """
    memory = {v: v for v in given}  # in which value's memory each lies
    last: dict[V, int] = {}
    for time, done in enumerate(executions):
        read = [memory[v] for v in done.reads if v in memory]
        last |= dict.fromkeys(read, time)
        for made in done.makes:
            memory[made] = read[0] if done.view and read else made
            last[memory[made]] = time
    last |= {memory[v]: len(executions) for v in kept if v in memory}
    size = {**given, **{v: b for done in executions for v, b in done.makes.items() if memory[v] == v}}
    live = {v for v in given if v in last}
    peak = total = sum(size[v] for v in live)
    for time, done in enumerate(executions):
        ending = [v for v in {memory[v] for v in done.reads if v in memory} if last[v] == time]
        for made in (v for v in done.makes if memory[v] == v):
            over = next((v for v in ending if done.in_place and size[v] == size[made]), None)
            if over is not None:
                ending.remove(over)
                live.remove(over)
                total -= size[over]
            live.add(made)
            total += size[made]
        peak = max(peak, total)
        for gone in [v for v in {*ending, *(memory[m] for m in done.makes)} if v in live and last[v] == time]:
            live.remove(gone)
            total -= size[gone]
    return peak


@dataclass(frozen=True)
class PeakCost:
    """The most bytes of activations of a graph, its inputs among them; symbols have the `sizes` given."""

    sizes: Mapping[str, int] = field(default_factory=dict)

    def cost(self, graph: Graph, most: float = math.inf) -> float:
        """Bytes. Raises `ShapeError` where `sizes` do not fit the graph."""
        graph = concretize(graph, self.sizes)
        given = {v: bytes_of(v) for v in graph.inputs if not v.constant}
        return float(peak_bytes([_executed(kernel) for kernel in cut(graph)], given, graph.outputs))

    def estimate(self, graph: Graph) -> float:
        """The same."""
        return self.cost(graph)

    def breakdown(self, graph: Graph) -> list[tuple[Kernel, float]]:
        """The kernels of a graph with the bytes that each makes."""
        return [(k, 0.0 if k.is_view else bytes_of(k.root)) for k in cut(concretize(graph, self.sizes))]


def _executed(kernel: Kernel) -> Execution[Term]:
    return Execution(kernel.reads, {kernel.root: bytes_of(kernel.root)}, kernel.is_view, _in_place(kernel.root))


def _in_place(term: Term) -> bool:
    """Whether a runtime writes over an input: element by element, or the channels of an image scaled and shifted."""
    op = term.operator
    return isinstance(op, BatchNorm) or (isinstance(op, Declared) and op.pointwise)


def activations(program: Program, sizes: Mapping[str, int]) -> int | None:
    """The most bytes of activations of a model, without its inputs: those are the caller's.

    None where the size of a value is not known, as behind opaque nodes may be.
    """
    executions: list[Execution[str]] = []
    for step in program.steps:
        made = {name: _bytes(program.values.get(name), sizes) for name in step.outputs}
        known = {name: count for name, count in made.items() if count is not None}
        if len(known) < len(made):
            return None
        applied = running(*step.terms)
        view = len(applied) == 1 and isinstance(applied[0].operator, Reshape | Rows)
        over = len(step.terms) == 1 and all(map(_in_place, applied))
        executions.append(Execution(step.inputs, known, view, over))
    return peak_bytes(executions, {}, program.outputs)


def _bytes(value: Term | None, sizes: Mapping[str, int]) -> int | None:
    if value is None:
        return None
    return bytes_of(concretize(Graph((value,), (value,)), sizes).outputs[0])
