"""Runtimes that run models and are measured, behind one interface; and how random inputs are drawn for them."""

from __future__ import annotations

import itertools
import math
import os
import platform
import statistics
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from superopt.cost.quiet import GAUGE
from superopt.cost.rates import CORE, Rates
from superopt.cost.smooth import smooth
from superopt.cost.steady import Steady
from superopt.errors import SuperoptError

Feeds: TypeAlias = "dict[str, NDArray[Any]]"
Session: TypeAlias = Any
"""A loaded model, of the runtime's own type."""

_ATTEMPTS, _SPREAD = 3, 0.1
"""How often a measurement is tried, until its interquartile range is this part of its median."""

_SHORT_S = 2e-4
"""A run of no more suffers much where somebody else is busy on the same core."""

WARM_UP = 2
"""Runs that are not counted: onnxruntime plans its memory in the first, and takes it in the second."""

_DTYPES: dict[str, type[np.generic]] = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(float16)": np.float16,
    "tensor(int8)": np.int8,
    "tensor(int16)": np.int16,
    "tensor(int32)": np.int32,
    "tensor(int64)": np.int64,
    "tensor(uint8)": np.uint8,
    "tensor(uint16)": np.uint16,
    "tensor(uint32)": np.uint32,
    "tensor(uint64)": np.uint64,
    "tensor(bool)": np.bool_,
}


class RuntimeFailed(SuperoptError):
    """The runtime could not load or run a model; says on one line what it said."""


@dataclass(frozen=True)
class Key:
    """What timings depend on besides the model."""

    runtime: str
    version: str
    device: str
    threads: int


@dataclass(frozen=True)
class Timing:
    """Repeated runs of one model: median and interquartile range in seconds, and how many."""

    seconds: float
    spread: float
    runs: int


@dataclass(frozen=True)
class Draw:
    """How random floating-point inputs are drawn: normal around `offset`, or uniform over `offset … offset + scale`;
    images `smooth`, if so, with neighbours alike; and half of the rows zeros, where it is `blank`.

    `shapes` gives those of inputs, `sizes` symbolic dimensions by name; others are `size`. Integers are 0 or more,
    and less than `below`; where that is None, less than the `limits` say of inputs by name (of all elements, or of each
    place along the last axis), and than 2 of all others: 0 and 1 are valid indices into every axis longer than one,
    valid token types and masks. What is `given`, by name, is not drawn, and `deciding` inputs are one number each.
    """

    scale: float = 1.0
    offset: float = 0.0
    uniform: bool = False
    smooth: bool = False
    blank: bool = False
    size: int = 1
    sizes: Mapping[str, int] = field(default_factory=dict)
    below: int | None = None
    limits: Mapping[str, int | tuple[int, ...]] = field(default_factory=dict)
    shapes: Mapping[str, tuple[int | None, ...]] = field(default_factory=dict)
    given: Mapping[str, NDArray[Any]] = field(default_factory=dict, compare=False)
    deciding: Mapping[str, int] = field(default_factory=dict)


PHOTOGRAPH = Draw(scale=0.25, offset=0.5, smooth=True)
"""How inputs of models are drawn that are measured: bright images as photographs are, mostly from 0 to 1. Where they
are dark as often, more depends on what sign a number has, and what asks for none gains more than people will see.
"""

KERNEL = Draw(below=1, smooth=True)
"""How inputs of kernels and pieces are drawn: their integers may be indices into any axis."""


@dataclass(frozen=True)
class Argument:
    """An input or output of a model as the runtime reports it; dimensions are sizes, names or None."""

    name: str
    type: str
    shape: tuple[int | str | None, ...]


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
        return {a.name: given[a.name] if a.name in given else _random(a, rng, draw) for a in self.inputs(session)}

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


def summary(times: list[float]) -> Timing:
    """Median and interquartile range of at least two times."""
    low, middle, high = statistics.quantiles(times, n=4, method="inclusive")
    return Timing(middle, high - low, len(times))


@cache
def _memory() -> int:
    """The machine's memory in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


@cache
def device() -> str:
    """The processor: its marketing name, and family and model, which virtual machines leave more precise."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n")[0].splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    facts = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    if "model name" not in facts:
        return platform.machine()
    return f"{facts['model name']} ({facts.get('cpu family', '?')}/{facts.get('model', '?')})"


def _random(argument: Argument, rng: np.random.Generator, draw: Draw) -> NDArray[Any]:
    dtype = _DTYPES.get(argument.type)
    if dtype is None:
        raise RuntimeFailed(f'input "{argument.name}" is a {argument.type}: there are no random values of that type')
    named = {d: draw.sizes.get(d, draw.size) for d in argument.shape if isinstance(d, str)}
    own = [d if isinstance(d, int) else named.get(d or "", draw.size) for d in argument.shape]
    shape = [o if d is None else d for d, o in zip(draw.shapes.get(argument.name, own), own, strict=True)]
    if math.prod(shape) * 8 > _memory() / 2:
        raise RuntimeFailed(f'input "{argument.name}" of shape {shape} does not fit in memory; give it smaller sizes')
    if argument.name in draw.deciding:
        return np.full(shape, draw.deciding[argument.name], dtype)
    if not issubclass(dtype, np.floating):
        below = draw.limits.get(argument.name, 2) if draw.below is None else draw.below
        return rng.integers(0, 2 if dtype is np.bool_ else below, size=shape).astype(dtype)
    if draw.uniform:
        values = rng.random(shape)
    else:
        values = smooth(rng, shape) if draw.smooth else rng.standard_normal(shape)
    if (draw.scale, draw.offset) != (1.0, 0.0):
        values = draw.offset + draw.scale * values
    if draw.blank:
        zeros = rng.random(values.shape[:-1]) < 0.5
        zeros.flat[:1] = True
        values = np.where(zeros[..., None] if values.ndim else zeros, 0.0, values)
    return np.asarray(values, dtype=dtype)
