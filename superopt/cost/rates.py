"""What machines compute and move in a second, by order of magnitude: for what nobody has measured."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rates:
    """Floating-point operations and bytes of memory in a second, and the seconds that a kernel takes at least."""

    flops_per_s: float
    bytes_per_s: float
    launch_s: float


CORE = Rates(1e11, 1e10, 2e-6)
"""One core of a current server processor."""

GPU = Rates(3e13, 2e12, 6e-6)
"""A current GPU, in 32 bits. Of an H100 single kernels of 128×128 images reach 3.6e13 and 2.7e12."""
