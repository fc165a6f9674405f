"""What a timing is, and what it depends on."""

from __future__ import annotations

import platform
import statistics
from dataclasses import dataclass
from functools import cache
from pathlib import Path


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
