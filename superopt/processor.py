"""What the processor of this machine is and can, as far as that is told."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from functools import cache
from pathlib import Path

X86 = frozenset(["x86_64", "amd64", "i386", "i686"])
"""What processors of Intel and AMD are called."""


def is_x86() -> bool:
    """Whether it is one of these."""
    return platform.machine().lower() in X86


@cache
def facts() -> Mapping[str, str]:
    """What Linux tells of the first of its processors, by names; nothing where nobody tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n")[0].splitlines()
    except OSError:
        return {}
    return {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}


def flags() -> frozenset[str]:
    """The names of the instructions that it has; none where nobody tells."""
    return frozenset(facts().get("flags", "").split())
