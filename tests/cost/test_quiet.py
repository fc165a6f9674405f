"""What is measured is measured while nobody else is busy on the same core, where there are such moments."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from superopt.cost import quiet, runtime
from superopt.cost.quiet import Gauge
from superopt.cost.runtime import Runtime
from superopt.cost.timing import Timing

EASE, CONTENTION = 3e-6, 5e-6
"""Seconds of the small computation, alone and beside somebody else."""


class Core:
    """A clock of a core that is shared for so many readings, and then is not; everything takes longer meanwhile."""

    def __init__(self, readings: int) -> None:
        self.left, self.now, self._ends = readings, 0.0, False

    @property
    def slower(self) -> float:
        return CONTENTION / EASE if self.left > 0 else 1.0

    def __call__(self) -> float:
        if self._ends:
            self.now += EASE * self.slower
        self._ends = not self._ends
        return self.now


def gauge(core: Core, monkeypatch: pytest.MonkeyPatch) -> Gauge:
    """A gauge that knows how long its computation takes on that core alone."""
    monkeypatch.setattr(quiet, "FIRST_S", 0.02)
    monkeypatch.setattr(quiet, "PAUSE_S", 0.0)
    made = Gauge(core)
    left, core.left = core.left, 0
    assert made.is_quiet()
    core.left = left
    read = made._seconds

    def counted() -> Iterator[float]:
        core.left -= 1
        return read()

    monkeypatch.setattr(made, "_seconds", counted)
    return made


def test_a_core_that_somebody_shares_is_not_quiet_until_they_are_done(monkeypatch: pytest.MonkeyPatch) -> None:
    core = Core(readings=60)
    found = gauge(core, monkeypatch)
    assert not found.is_quiet()
    assert found.is_quiet_within(5.0)
    assert core.left <= 0


def test_waiting_for_quiet_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not gauge(Core(readings=10**9), monkeypatch).is_quiet_within(0.05)


def test_who_is_disturbed_for_good_is_used_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    found = gauge(Core(readings=10**9), monkeypatch)
    assert not found.is_quiet()
    monkeypatch.setattr(quiet, "LATELY_S", -2)
    assert found.is_quiet()


class Run:
    """A model that takes as long as the core lets it."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def run(self) -> float:
        return 1e-4 * self._core.slower

    run_first = run


def test_a_kernel_is_timed_in_a_quiet_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    core = Core(readings=300)
    monkeypatch.setattr(runtime, "GAUGE", gauge(core, monkeypatch))
    found = Runtime.time(_runs(core), None, {})
    assert (found.seconds, core.left <= 0) == (1e-4, True)


def test_a_kernel_is_timed_though_no_moment_is_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    core = Core(readings=10**9)
    monkeypatch.setattr(runtime, "GAUGE", gauge(core, monkeypatch))
    monkeypatch.setattr(quiet, "WAIT_S", 0.05)
    found = Runtime.time(_runs(core), None, {})
    assert found == Timing(pytest.approx(1e-4 * CONTENTION / EASE), pytest.approx(0.0), found.runs)


def test_what_all_measurements_wait_is_a_part_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    found = gauge(Core(readings=0), monkeypatch)
    assert found.patience() == quiet.WAIT_S
    found.has_waited(quiet.WAIT_S)
    assert found.patience() < 0.1 * quiet.WAIT_S
    monkeypatch.setattr(found, "_begun", found._begun - 100.0)
    assert found.patience() == quiet.WAIT_S


def _runs(core: Core) -> Runtime:
    class Only:
        def bound(self, *_: object) -> Run:
            return Run(core)

    return Only()  # type: ignore[return-value]
