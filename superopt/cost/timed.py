"""What is timed in a process of its own: models in files, one alone or several in turns."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np

from superopt.cost.inputs import KERNEL, Argument, Draw, Feeds
from superopt.cost.runtime import Runtime, Session, in_turn, warmed_up
from superopt.cost.steady import Steady
from superopt.cost.timing import Timing, summary
from superopt.memory import trim

KERNEL_BUDGET_S = 0.15
"""The longest that the runs of one kernel take, beyond three."""
ROUNDS, ROUNDS_S = (3, 31), 0.08
"""How often graphs are run in turns, by sessions made in one order: at least, at most; and the seconds that takes. Here
too ratios differ by sessions, 1 %, in half the time as in more.
"""
LONG_ROUNDS, ALIKE = 2, 1.02
"""Rounds that take longer than all should end sooner, at this many, where none differs from another by more: by how
many times as long a graph takes as the one before it.
"""


def run_alone(runtime: Runtime, model: Path) -> None:
    """Run a kernel once on random inputs. Raises `RuntimeFailed`."""
    session = runtime.session(model)
    runtime.bound(session, runtime.feeds(session, seed=0, draw=KERNEL)).run()


def time_alone(runtime: Runtime, model: Path, draw: Draw = KERNEL) -> Timing:
    """Time a kernel on random inputs. Raises `RuntimeFailed`."""
    session = runtime.session(model)
    return runtime.time(session, runtime.feeds(session, seed=0, draw=draw), KERNEL_BUDGET_S)


def time_in_turns(
    runtime: Runtime, models: Sequence[Path], around: int = 0, draw: Draw = KERNEL, one_by_one: bool = False
) -> tuple[Timing, ...]:
    """Time models, one run of each after the other, so that drift falls on all alike. Raises `RuntimeFailed`.

    Before each run `around` bytes are read: what a model that they are parts of would have put into the caches since.
    Sessions are made in one order and then in the other: those made first are slower, by 2 to 10 % for small models.
    Models that hold much are timed `one_by_one`, in both orders as well; each goes through more than caches hold.
    """
    if one_by_one:
        there, back = (tuple(_by_itself(runtime, m, draw) for m in way) for way in (models, models[::-1]))
    else:
        rest, inputs = np.ones(around // 8, np.int64), _Inputs(runtime, draw)  # not zeros, for which there is one page
        between = partial(rest.max, initial=0)
        there, back = (_in_turns(runtime, way, inputs, between) for way in (models, models[::-1]))
    return tuple(map(_mean, there, back[::-1]))


class _Inputs:
    """Random inputs, drawn once for all models that ask for the same."""

    def __init__(self, runtime: Runtime, draw: Draw) -> None:
        self._runtime, self._draw = runtime, draw
        self._drawn: dict[tuple[Argument, ...], Feeds] = {}

    def __call__(self, session: Session) -> Feeds:
        """Those of a loaded model. Raises `RuntimeFailed`."""
        asked = self._runtime.inputs(session)
        if asked not in self._drawn:
            self._drawn[asked] = self._runtime.feeds(session, seed=0, draw=self._draw)
        return self._drawn[asked]


def _by_itself(runtime: Runtime, model: Path, draw: Draw) -> Timing:
    """Time a model in a session that is alone, and gone afterwards."""
    (timing,) = _in_turns(runtime, (model,), _Inputs(runtime, draw))
    trim()
    return timing


def _in_turns(
    runtime: Runtime, models: Sequence[Path], inputs: _Inputs, between: Callable[[], object] | None = None
) -> tuple[Timing, ...]:
    """Time models in turns, in sessions that are made in this order; `between` is called ahead of every run."""
    bound = []
    for model in models:
        session = runtime.session(model)
        bound.append(runtime.bound(session, inputs(session)))
    times: list[list[float]] = [[] for _ in bound]
    warmed_up(bound)
    steady = Steady()
    end = time.perf_counter() + ROUNDS_S
    while len(times[0]) < ROUNDS[0] or (len(times[0]) < ROUNDS[1] and time.perf_counter() < end):
        if len(times[0]) == LONG_ROUNDS and time.perf_counter() > end and _alike(times):
            break
        for own, seconds in zip(times, steady(partial(in_turn, bound, between)), strict=True):
            own.append(seconds)
    return tuple(map(summary, times))


def _mean(there: Timing, back: Timing) -> Timing:
    """The time of a model that was timed in sessions made in one order and in the other."""
    return Timing(math.sqrt(there.seconds * back.seconds), max(there.spread, back.spread), there.runs + back.runs)


def _alike(times: Sequence[Sequence[float]]) -> bool:
    """Whether each round says the same of the graphs."""
    ratios = [[b / a for a, b in zip(one, other, strict=True)] for one, other in pairwise(times)]
    return all(max(r) <= ALIKE * min(r) for r in ratios)
