"""What is timed in a process of its own: models in memory, one alone or several in turns."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from superopt.cost.runtime import KERNEL, WARM_UP, Bound, Runtime, Session, Timing, summary

KERNEL_BUDGET_S = 0.15
"""The longest that the runs of one kernel take, beyond three."""
ROUNDS, ROUNDS_S = (5, 21), 0.25
"""How often graphs are run in turns: at least, at most, and for about how many seconds."""


@dataclass(frozen=True)
class Written:
    """A model in bytes; large weights, which it says are external, lie in files of numpy's."""

    message: bytes
    weights: Mapping[str, Path] = field(default_factory=dict)


def loaded(runtime: Runtime, model: Written) -> Session:
    """A session of a model. Raises `RuntimeFailed`."""
    return runtime.session(model.message, weights={n: np.load(path) for n, path in model.weights.items()})


def time_alone(runtime: Runtime, model: Written) -> Timing:
    """Time a kernel on random inputs. Raises `RuntimeFailed`."""
    session = loaded(runtime, model)
    return runtime.time(session, runtime.feeds(session, seed=0, draw=KERNEL), KERNEL_BUDGET_S)


def time_in_turns(runtime: Runtime, models: Sequence[Written]) -> tuple[Timing, ...]:
    """Time models, one run of each after the other, so that drift falls on all alike. Raises `RuntimeFailed`."""
    bound = []
    for model in models:
        session = loaded(runtime, model)
        bound.append(Bound(session, runtime.feeds(session, seed=0, draw=KERNEL), runtime.clock))
    times: list[list[float]] = [[] for _ in bound]
    for b in bound * WARM_UP:
        b.run()
    end = time.perf_counter() + ROUNDS_S
    while len(times[0]) < ROUNDS[0] or (len(times[0]) < ROUNDS[1] and time.perf_counter() < end):
        for b, own in zip(bound, times, strict=True):
            own.append(b.run())
    return tuple(map(summary, times))
