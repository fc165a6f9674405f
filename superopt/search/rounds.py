"""Measurement in rounds: in each a fresh session of every model, run in turns; between them other processes measure."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from superopt.cost.child import Caller, Here, Unending
from superopt.cost.inputs import Draw, Feeds
from superopt.cost.lane import measuring
from superopt.cost.runtime import Bound, Runtime, in_turn, warmed_up
from superopt.cost.steady import Steady
from superopt.errors import OutOfTime
from superopt.memory import give_back, trim

Model = Path | bytes
Progress = Callable[[int, int], None]
"""Called with the number of rounds that are done, and of all."""

LEAST_SESSIONS, FEWEST_SESSIONS = 6, 3
"""How many rounds there are at least, of models that take long; and where the time is too short for these: a gain of a
third shows in three of them, and a session of a large model takes longer to load than ten inferences.
"""
LEAST_RUNS, LONG_S = 2, 0.25
"""How often a model is run in a session, at least; those that take longer than this in seconds, once."""
MOST_RUNS = 100
LOADING_SHARE = 0.25
"""Of the time that it took to make sessions, how much running them takes at least: where making one takes as long as a
hundred runs, as OpenVINO's of small models does, a few more of these cost next to nothing, and tell much more.
"""
LONGEST_ROUND_S = 300.0
"""A round that takes longer than this beside its budget, or than all may take, is taken as never ending."""


@dataclass(frozen=True)
class Harness:
    """Where and on what models are measured: with inputs of a `draw`, by the `caller` (this process by default), and
    one process at a time of those that share a directory for locks. At most one session of each model is alive; of
    models that are run `one_by_one`, as large ones should be, one of all.
    """

    runtime: Runtime
    seed: int = 0
    draw: Draw | None = None
    caller: Caller = field(default_factory=Here)
    lock_directory: Path | None = None
    one_by_one: bool = False

    def round(self, models: tuple[Model, ...], share_s: float, number: int, most_s: float) -> list[list[float]]:
        """The seconds of each run, by model, in the round of this number. Raises `Unending` after `most_s`."""
        run = _round_one_by_one if self.one_by_one else _round
        asked = models, self.runtime, share_s, self.seed + number, self.draw, number % 2 == 1
        return self.caller.call(most_s, run, *asked)


def rounds_of(
    models: tuple[Model, ...],
    harness: Harness,
    sessions: int,
    budget_s: float,
    most_s: float = math.inf,
    least: int = LEAST_SESSIONS,
    before: int = 0,
    progress: Progress | None = None,
) -> list[list[list[float]]]:
    """The seconds of each run, by round and by model, in the `least` rounds whatever the budget. As many rounds were
    `before`, whose turns of order go on.
    """
    limit, begun = LONGEST_ROUND_S + budget_s, time.monotonic()
    sessions = max(sessions, least)
    give_back()  # sessions are alive from here on
    rounds: list[list[list[float]]] = []
    spent = 0.0
    while (done := len(rounds)) < sessions:
        if done >= least and spent + spent / done > budget_s:
            break
        if progress:
            progress(done, sessions)
        share = (budget_s - spent) / (sessions - done)
        try:
            # Between rounds others may have their turn, which is none of the budget, but of all the time.
            with measuring(harness.lock_directory, _left(begun, most_s)):
                start, left = time.perf_counter(), _left(begun, most_s)
                try:
                    rounds.append(harness.round(models, share, before + done, min(limit, left)))
                except Unending as error:
                    raise error if limit < left else OutOfTime(str(error)) from None
                spent += time.perf_counter() - start
        except OutOfTime:
            if done < FEWEST_SESSIONS:
                raise
            break
        if not done and sessions > 1:
            sessions = _fitting(sessions, time.monotonic() - begun, most_s)
    if progress:
        progress(done, done)
    return rounds


def _left(begun: float, most_s: float) -> float:
    """The seconds that are left of so many."""
    return max(begun + most_s - time.monotonic(), 0.0)


def _fitting(sessions: int, each_s: float, most_s: float) -> int:
    """As many of the sessions as end in time. Raises `OutOfTime` where these are too few to tell anything."""
    if FEWEST_SESSIONS * each_s > most_s:
        raise OutOfTime(f"measuring takes about {FEWEST_SESSIONS * each_s:.0f} s")
    return int(min(most_s / each_s, sessions))


def _round(
    models: tuple[Model, ...], runtime: Runtime, share_s: float, seed: int, draw: Draw | None, backwards: bool
) -> list[list[float]]:
    """One fresh session of each model, run in turns: there and back, so that drift falls on all alike."""
    trim()  # what earlier rounds left; all that follows is warmed up anew
    start = time.perf_counter()
    order = list(range(len(models)))[:: -1 if backwards else 1]
    bound: dict[int, Bound] = {}
    feeds = None
    for i in order:
        session = runtime.session(models[i])
        feeds = feeds or runtime.feeds(session, seed, draw)
        bound[i] = runtime.bound(session, feeds)
    expected = warmed_up([bound[i] for i in order])
    loading_s = time.perf_counter() - start
    count = _count(max(share_s - loading_s, LOADING_SHARE * loading_s), expected, len(models))
    times: list[list[float]] = [[] for _ in models]
    steady = Steady()
    for turn in range(count):
        way = order[:: -1 if turn % 2 else 1]
        for i, seconds in zip(way, steady(partial(in_turn, [bound[i] for i in way])), strict=True):
            times[i].append(seconds)
    return times


def _round_one_by_one(
    models: tuple[Model, ...], runtime: Runtime, share_s: float, seed: int, draw: Draw | None, backwards: bool
) -> list[list[float]]:
    """One fresh session of each model, made when the one before it is gone: two large ones take twice the memory.

    Runs that are compared lie further apart, so that drift shows in the ratios of rounds: every other round has the
    other order, and intervals are as wide as rounds differ.
    """
    end = time.perf_counter() + share_s
    found: dict[int, list[float]] = {}
    feeds: Feeds | None = None
    count = 0
    for i in list(range(len(models)))[:: -1 if backwards else 1]:
        start = time.perf_counter()
        session = runtime.session(models[i])
        feeds = feeds or runtime.feeds(session, seed, draw)
        bound = runtime.bound(session, feeds)
        expected = warmed_up([bound])
        made = time.perf_counter()
        loading = (made - start) * (len(models) - 1)  # those to come are taken to load and run as the first
        count = count or _count(end - made - loading, expected * len(models), len(models))
        steady = Steady()
        found[i] = [steady(bound.run) for _ in range(count)]
        del session, bound
        trim()
    return [found[i] for i in range(len(models))]


def _count(left_s: float, expected_s: float, models: int) -> int:
    """How often each of so many models is run in the seconds that are left, where all take the expected once."""
    least = 1 if expected_s > LONG_S * models else LEAST_RUNS
    return min(max(int(left_s / expected_s), least), MOST_RUNS)
