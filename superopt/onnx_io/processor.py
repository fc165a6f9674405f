"""What the processor of this machine can, as far as that is told."""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path

X86 = frozenset(["x86_64", "amd64", "i386", "i686"])
"""What processors of Intel and AMD are called."""


def is_x86() -> bool:
    """Whether it is one of these."""
    return platform.machine().lower() in X86


@cache
def flags() -> frozenset[str] | None:
    """The names of the instructions that it has, as Linux tells them; None where nothing does."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    return frozenset(next((line.partition(":")[2].split() for line in lines if line.startswith("flags")), []))
