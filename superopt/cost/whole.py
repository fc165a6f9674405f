"""Graphs as models of their own, timed whole: there kernels stand in their context."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from pathlib import Path

from superopt.cost.runtime import KERNEL, WARM_UP, Bound, Runtime, RuntimeFailed, Session, Timing, summary
from superopt.cost.table import measuring
from superopt.onnx_io import standalone_apart
from superopt.term import Graph, Term, subterms

ROUNDS, ROUNDS_S = (5, 21), 0.25
"""How often graphs are run in turns: at least, at most, and for about how many seconds."""


def in_turns(
    graphs: Sequence[Graph], runtime: Runtime, opset: int, lock_directory: Path | None = None
) -> tuple[Timing, ...]:
    """Time graphs whole, one run of each after the other, so that drift falls on all alike.

    Raises what emitting does, and `RuntimeFailed`.
    """
    bound = []
    for graph in graphs:
        session = session_of(graph, runtime, opset)
        bound.append(Bound(session, runtime.feeds(session, seed=0, draw=KERNEL), runtime.clock))
    times: list[list[float]] = [[] for _ in bound]
    with measuring(lock_directory):
        for b in bound * WARM_UP:
            b.run()
        end = time.perf_counter() + ROUNDS_S
        while len(times[0]) < ROUNDS[0] or (len(times[0]) < ROUNDS[1] and time.perf_counter() < end):
            for b, own in zip(bound, times, strict=True):
                own.append(b.run())
    return tuple(map(summary, times))


def session_of(graph: Graph, runtime: Runtime, opset: int) -> Session:
    """A session of these terms alone, over weights of random values.

    Raises what emitting does, and `RuntimeFailed`.
    """
    try:
        message, weights = standalone_apart(graph, opset)
    except ValueError as error:  # protobuf's limit of 2 GB
        raise RuntimeFailed(f"the graph is too large to be timed: {error}") from None
    return runtime.session(message, weights=weights)


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
