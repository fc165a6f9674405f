"""Runtimes that run models and are measured, behind one interface."""

from __future__ import annotations

import itertools
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from superopt.cost.inputs import Argument, Draw, Feeds, drawn
from superopt.cost.quiet import GAUGE
from superopt.cost.rates import CORE, Rates
from superopt.cost.steady import Steady
from superopt.cost.timing import Key, Timing, summary

Session: TypeAlias = Any
"""A loaded model, of the runtime's own type."""

_ATTEMPTS, _SPREAD = 3, 0.1
"""How often a measurement is tried, until its interquartile range is this part of its median."""

_SHORT_S = 2e-4
"""A run of no more suffers much where somebody else is busy on the same core."""

WARM_UP = 2
"""Runs that are not counted: onnxruntime plans its memory in the first, and takes it in the second."""


class Bound(Protocol):
    """A session with its inputs bound once, so that a run costs little beside the model itself."""

    def run(self) -> float:
        """Run once; the seconds it took by the runtime's clock. Raises `RuntimeFailed`."""

    def run_first(self) -> float:
        """The same, and what of memory only a first run takes is given back."""


@dataclass(frozen=True)
class Runtime(ABC):
    """What runs models, with a number of threads. It is sent to the process that measures, so it holds no session."""

    keeps_blocks: ClassVar[bool] = True
    """Whether images stay in blocks of channels from one convolution to the next (`cost/layouts.py`)."""

    streams_weights: ClassVar[bool] = True
    """Whether what it takes to read weights from memory shows in its times (`cost/streamed.py`)."""

    chooses_algorithms: ClassVar[bool] = False
    """Whether sessions try algorithms as they first run: then little is timed in the time that a search has."""

    fuses_elements: ClassVar[bool] = False
    """Whether point-wise operators that follow each other are one kernel, and many of them take no longer than one."""

    widens_half: ClassVar[bool] = False
    """Whether it computes 16-bit floats in 32 bits throughout, so that a model in 32 bits takes no longer."""

    rates: ClassVar[Rates] = CORE
    """What its device does, roughly: where estimates start from (`cost/estimate.py`)."""

    threads: int = 1

    @property
    def installed(self) -> bool:
        """Whether its library, which is there, was built with what this needs of it."""
        return True

    @property
    @abstractmethod
    def key(self) -> Key:
        """What timings of this runtime are stored under. Raises `RuntimeFailed` where its device is lacking."""

    @property
    @abstractmethod
    def clock(self) -> Callable[[], float]:
        """What runs are timed by, in seconds: with one thread processor time, which other programs do not take."""

    @property
    @abstractmethod
    def standard(self) -> Runtime:
        """The runtime that, without its optimizations, says what a model computes."""

    @abstractmethod
    def session(self, model: bytes | Path, optimize: bool = True) -> Session:
        """Load a model, with all of the runtime's own optimizations or none. Raises `RuntimeFailed`."""

    @abstractmethod
    def inputs(self, session: Session) -> tuple[Argument, ...]:
        """The inputs of a loaded model, in order."""

    @abstractmethod
    def outputs(self, session: Session) -> tuple[Argument, ...]:
        """The outputs of a loaded model, in order."""

    @abstractmethod
    def run(self, session: Session, feeds: Feeds) -> list[NDArray[Any]]:
        """The outputs, in order. Raises `RuntimeFailed`."""

    @abstractmethod
    def bound(self, session: Session, feeds: Feeds) -> Bound:
        """A session that is to be run with these inputs again and again. Raises `RuntimeFailed`."""

    def feeds(self, session: Session, seed: int, draw: Draw | None = None) -> Feeds:
        """Random inputs for a model, the same for the same seed. Raises `RuntimeFailed` for types without a random."""
        rng, draw = np.random.default_rng(seed), draw or Draw()
        given = draw.given
        return {a.name: given[a.name] if a.name in given else drawn(a, rng, draw) for a in self.inputs(session)}

    def time(
        self,
        session: Session,
        feeds: Feeds,
        budget_s: float = 0.15,
        least_s: float = 0.003,
        least_runs: int = 5,
    ) -> Timing:
        """Run repeatedly: `least_runs` times and `least_s` seconds, but no longer than `budget_s` after three runs that
        count. What is timed twice differs by its sessions, 1.5 % in the median, and no less where it is run for longer.

        With one thread it is processor time that counts, which other programs do not take. Where runs still differ by
        much, the quietest of a few attempts is given; what is short waits for a moment at which nobody else is busy on
        the same core, for a while. Raises `RuntimeFailed`.
        """
        bound = self.bound(session, feeds)
        warmed_up([bound])
        steady = Steady()
        found: list[tuple[bool, Timing]] = []
        patience, waiting = GAUGE.patience(), None
        for attempt in itertools.count(1):
            waited = 0.0 if waiting is None else time.monotonic() - waiting
            quiet = GAUGE.is_quiet() if waiting is None else GAUGE.is_quiet_within(patience - waited)
            times: list[float] = []
            total = 0.0
            while len(times) < 3 or (total < budget_s and (len(times) < least_runs or total < least_s)):
                times.append(steady(bound.run))
                total += times[-1]
            found.append((not (quiet and GAUGE.is_quiet()), summary(times)))
            disturbed, best = min(found, key=lambda f: (f[0], f[1].seconds))
            if disturbed and best.seconds <= _SHORT_S and waited < patience:
                waiting = waiting or time.monotonic()
            elif attempt >= _ATTEMPTS or best.spread <= _SPREAD * best.seconds:
                break
        if waiting is not None:
            GAUGE.has_waited(time.monotonic() - waiting)
        return best


def lasted(clock: Callable[[], float], start: float) -> float:
    """The seconds since a time of a clock, and a nanosecond at least: processor time may stand still for a few
    microseconds where a virtual machine is told of it late, and what took no time divides nothing.
    """
    return max(clock() - start, 1e-9)


def warmed_up(bound: Sequence[Bound]) -> float:
    """Run each, in turns, as often as is not counted; the seconds that the last turn took. Raises `RuntimeFailed`."""
    expected = sum(b.run_first() for b in bound)
    for _ in range(1, WARM_UP):
        expected = sum(b.run() for b in bound)
    return expected


def in_turn(bound: Sequence[Bound], before: Callable[[], object] | None = None) -> list[float]:
    """The seconds of one run of each; `before` is called ahead of every run. Raises `RuntimeFailed`."""
    found = []
    for b in bound:
        if before is not None:
            before()
        found.append(b.run())
    return found
