"""Runs in which the process takes memory do not count, as long as they are few."""

from __future__ import annotations

import mmap
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from superopt.cost.inputs import Argument, Feeds
from superopt.cost.ort import OnnxRuntime
from superopt.cost.steady import FEW_FAULTS, MOST_AGAIN, Steady
from superopt.cost.timed import ROUNDS_S, time_in_turns
from superopt.search.paired import compare
from superopt.search.rounds import Harness

PAGES = 4 * FEW_FAULTS
SLOW, FAST = 9.0, 1.0


@dataclass
class Growing:
    """A model that takes memory in its first runs, and is slow there."""

    takes: int
    waits: float = 0.0
    runs: int = 0
    _held: list[mmap.mmap] = field(default_factory=list)

    def run(self) -> float:
        self.runs += 1
        time.sleep(self.waits)
        if self.runs > self.takes:
            return FAST
        self._held.append(mmap.mmap(-1, PAGES * mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
        for page in range(PAGES):
            self._held[-1][page * mmap.PAGESIZE] = 1
        return SLOW

    run_first = run


@pytest.mark.parametrize("takes", range(MOST_AGAIN + 1))
def test_a_run_is_done_again_until_it_takes_no_memory(takes: int) -> None:
    model = Growing(takes)
    assert Steady()(model.run) == FAST
    assert model.runs == takes + 1


def test_a_model_that_takes_memory_in_each_run_is_run_again_once_and_never_more() -> None:
    model, steady = Growing(takes=100), Steady()
    assert [steady(model.run) for _ in range(3)] == [SLOW] * 3
    assert model.runs == MOST_AGAIN + 3


def test_what_takes_a_page_or_two_counts() -> None:
    kept: list[bytearray] = []

    def run() -> float:
        kept.append(bytearray(2 * mmap.PAGESIZE))
        return FAST

    steady = Steady()
    assert [steady(run) for _ in range(5)] == [FAST] * 5
    assert len(kept) == 5


@dataclass(frozen=True)
class Growth(OnnxRuntime):
    """Sessions of models that take memory in three runs, one more than are never counted, and are long."""

    waits: float = 0.0

    def session(self, model: bytes | Path, optimize: bool = True, profile: Path | None = None) -> str:
        return str(model)

    def inputs(self, session: str) -> tuple[Argument, ...]:
        return ()

    def bound(self, session: str, feeds: Feeds) -> Growing:  # type: ignore[override]
        return Growing(3, self.waits)


def of_a_kernel() -> list[float]:
    found = Growth().time("a", {}, least_runs=3, budget_s=0.0)
    return [found.seconds, found.seconds + found.spread]


def of_pieces() -> list[float]:
    return [
        s
        for t in time_in_turns(Growth(waits=ROUNDS_S / 3), [Path("a"), Path("b")])
        for s in (t.seconds, t.seconds + t.spread)
    ]


def of_whole_models() -> list[float]:
    found = compare(Path("a"), Path("b"), Harness(Growth()), budget_s=0.0)
    return [found.original.high, found.candidate.high]


@pytest.mark.parametrize("measured", [of_a_kernel, of_pieces, of_whole_models])
def test_no_measurement_counts_a_run_that_takes_memory(measured: Callable[[], list[float]]) -> None:
    found = measured()
    assert found
    assert found == [FAST] * len(found)
