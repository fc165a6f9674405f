"""What a server can be told: where it listens, and what one request may use."""

import math
import os
from dataclasses import dataclass
from typing import Final

from superopt.errors import UsageError

MIB: Final = 1 << 20
PROTOBUF_LIMIT: Final = 1 << 31
"""Every ONNX file that holds its weights is smaller."""


@dataclass(frozen=True)
class Settings:
    """Limits in bytes and seconds; raises `UsageError` for one that nobody could work under."""

    host: str = "127.0.0.1"
    port: int = 8000
    max_bytes: int = 512 * MIB
    """The largest model that is accepted."""
    time_limit: float = 600.0
    """The longest time that a request may ask for."""
    memory: int = 8192 * MIB
    """What the optimizer may allocate for one model."""
    waiting: int = 4
    """How many requests may wait while one is optimized."""
    usual_time: float = 60.0
    """The time of a request that names none, where the limit is not below it."""
    upload_time: float = 300.0
    """How long a client may take to send its model."""
    grace: float = 60.0
    """What starting, writing and being late may take beyond that time before the optimizer is killed."""
    stop_after: int = 5
    """What answers under way get when the server is told to stop."""
    kept_bytes: int = 64 * MIB
    """The memory that reports are kept in; the oldest go first."""

    def __post_init__(self) -> None:
        for name in ("max_bytes", "time_limit", "memory", "usual_time", "upload_time", "grace", "kept_bytes"):
            if not 0 < getattr(self, name) < math.inf:
                raise UsageError(f"{name.replace('_', '-')} must be positive and finite, not {getattr(self, name)}")
        if self.max_bytes > PROTOBUF_LIMIT:
            raise UsageError(
                f"max-bytes is {self.max_bytes}; above {PROTOBUF_LIMIT}, models keep their weights in a second file"
            )
        if not 0 <= self.port <= 65535:
            raise UsageError(f"port must be from 0 to 65535, not {self.port}")
        if self.waiting < 0:
            raise UsageError(f"waiting must not be negative: {self.waiting}")

    def time_of(self, asked: float | None) -> float:
        """The time of a request that asks for so much, or names none."""
        return min(self.usual_time, self.time_limit) if asked is None else asked

    @property
    def max_threads(self) -> int:
        """More threads than cores would be measured wrongly."""
        return os.cpu_count() or 1
