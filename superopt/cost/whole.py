"""Graphs as models of their own, timed whole: there kernels stand in their context."""

from __future__ import annotations

import hashlib
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from superopt.cost.runtime import Bound, Runtime, Session, Timing, summary
from superopt.cost.table import measuring
from superopt.dim import product
from superopt.onnx_io import save, standalone, standalone_model
from superopt.term import Graph, Term, subterms, variables

ROUNDS, ROUNDS_S = (5, 21), 0.25
"""How often graphs are run in turns: at least, at most, and for about how many seconds."""
LARGE = 32 * 2**20
"""Above this many bytes, weights are not copied into the runtime."""


def in_turns(
    graphs: Sequence[Graph], runtime: Runtime, opset: int, lock_directory: Path | None = None
) -> tuple[Timing, ...]:
    """Time graphs whole, one run of each after the other, so that drift falls on all alike.

    Raises what emitting does, and `RuntimeFailed`.
    """
    bound = []
    for graph in graphs:
        session = session_of(graph, runtime, opset)
        bound.append(Bound(session, runtime.feeds(session, seed=0), runtime.clock))
    times: list[list[float]] = [[] for _ in bound]
    with measuring(lock_directory):
        for b in bound:
            b.run()
        end = time.perf_counter() + ROUNDS_S
        while len(times[0]) < ROUNDS[0] or (len(times[0]) < ROUNDS[1] and time.perf_counter() < end):
            for b, own in zip(bound, times, strict=True):
                own.append(b.run())
    return tuple(map(summary, times))


def session_of(graph: Graph, runtime: Runtime, opset: int) -> Session:
    """A session of these terms alone, over weights of random values.

    Large weights go through a file that the runtime maps into memory. Raises what emitting does, and `RuntimeFailed`.
    """
    weights = [v for v in variables(*graph.outputs) if v.constant]
    if sum(4 * product(v.shape) for v in weights) <= LARGE:
        return runtime.session(standalone(graph, opset).SerializeToString())
    with tempfile.TemporaryDirectory(prefix="superopt-") as folder:
        path = Path(folder) / "terms.onnx"
        save(standalone_model(graph, opset), path, external_data=True)
        return runtime.session(path)


def fingerprint(graph: Graph) -> str:
    """A hash of a graph: equal for equal operators over inputs of equal types, whatever their names."""
    places: dict[Term, int] = {}
    lines: list[str] = []
    for term in subterms(*graph.outputs):
        what = (term.type, term.constant) if term.is_variable else (str(term.operator),)
        lines.append(" ".join(map(str, (*what, *(places[i] for i in term.inputs)))))
        places[term] = len(places)
    lines.append(" ".join(str(places[o]) for o in graph.outputs))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:32]
