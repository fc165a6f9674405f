"""One run of the command on one network: what it could use, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

BOTH, DEFINITIONS_ALONE, RULES_ALONE, OF_ONE_OUTPUT = "both", "definitions", "rules", "of one output"
"""What the search may use."""
EMPTY, FULL = "empty", "full"
"""The table of timings that it finds."""


@dataclass(frozen=True)
class Run:
    """One run of the command: `timings` is the table that it found; `code` is its exit code, `error` what it said.

    Seconds are of the whole process, bytes the most that it and its processes held; `report` is what it wrote.
    """

    network: str
    uses: str
    timings: str
    seconds: float
    peak_bytes: int
    model_bytes: int
    code: int
    error: str
    report: dict[str, Any] | None
