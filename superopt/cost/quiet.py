"""Whether a core is this process's own at the moment, told by a small computation that is always the same.

Two hardware threads share the units of one core, and on shared machines the other is somebody else's. While it is busy
a kernel of microseconds takes up to twice as long, for milliseconds or for seconds, all runs alike: neither a median
nor processor time tells. Nor would longer runs: what was measured then is compared with what was measured before.
"""

from __future__ import annotations

import statistics
import time
from collections import deque
from collections.abc import Callable

import numpy as np

QUIET = 1.15
"""Up to this much more than the least that was read lately counts as quiet."""

LATELY_S = 20
"""For so long a reading counts: where somebody else is busy for good, that is what it takes to be used to it."""

FIRST_S, PAUSE_S = 0.15, 0.004
"""For so long readings are taken before the first that is told of, which would be the least of itself; and the seconds
between two of them.
"""

WAIT_S, WAIT_SHARE = 0.5, 0.1
"""For how long one measurement may wait for quiet moments, and which part of all the time all of them may."""

_RUNS, _PRODUCTS = 25, 4
_ELEMENTS = 4096
"""Of 4 bytes: two such arrays fit into the smallest of first caches."""


class Gauge:
    """Reads how long the same products of numbers in the first cache take, a tenth of a millisecond each time."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._given = np.linspace(0.5, 1.0, _ELEMENTS, dtype=np.float32)
        self._made = np.empty_like(self._given)
        self._least: deque[list[float]] = deque()
        """Of each second lately: when it was, and the least that was read in it."""
        self._begun, self._waited = time.monotonic(), 0.0

    def patience(self) -> float:
        """The seconds that a measurement may wait now, all that waited before counted."""
        return min(WAIT_S, max(WAIT_S + WAIT_SHARE * (time.monotonic() - self._begun) - self._waited, 0.0))

    def has_waited(self, seconds: float) -> None:
        """A measurement waited for so long, or was tried again."""
        self._waited += seconds

    def is_quiet(self) -> bool:
        """Whether they take no longer than they did in other moments lately."""
        if not self._least:
            first = time.monotonic()
            while time.monotonic() < first + FIRST_S:
                self._read()
                time.sleep(PAUSE_S)
        reading = self._read()
        return reading <= QUIET * min(least for _, least in self._least)

    def is_quiet_within(self, seconds: float) -> bool:
        """Wait until it is quiet, but no longer than that; whether it is."""
        until = time.monotonic() + seconds
        while not (quiet := self.is_quiet()) and time.monotonic() < until:
            time.sleep(PAUSE_S)
        return quiet

    def _read(self) -> float:
        reading = statistics.median(self._seconds() for _ in range(_RUNS))
        second = time.monotonic() // 1
        while self._least and self._least[0][0] < second - LATELY_S:
            self._least.popleft()
        if self._least and self._least[-1][0] == second:
            self._least[-1][1] = min(self._least[-1][1], reading)
        else:
            self._least.append([second, reading])
        return reading

    def _seconds(self) -> float:
        start = self._clock()
        for _ in range(_PRODUCTS):
            np.multiply(self._given, self._given, out=self._made)
        return self._clock() - start


GAUGE = Gauge()
"""That of this process."""
