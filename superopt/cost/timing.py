"""What a timing is, and what it depends on."""

from __future__ import annotations

import platform
import statistics
from dataclasses import dataclass

from superopt.processor import facts


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


def summary(times: list[float]) -> Timing:
    """Median and interquartile range of at least two times."""
    low, middle, high = statistics.quantiles(times, n=4, method="inclusive")
    return Timing(middle, high - low, len(times))


def device() -> str:
    """The processor: its marketing name, and family and model, which virtual machines leave more precise."""
    told = facts()
    if not told:
        return platform.processor() or platform.machine()
    if "model name" not in told:
        return platform.machine()
    return f"{told['model name']} ({told.get('cpu family', '?')}/{told.get('model', '?')})"
