"""Runs that count once all memory is there: one that takes some from the system spends part of its time on the pages.

onnxruntime takes memory in the first run of a session, plans it then, and takes it anew in the second; where some was
given back between them, in the third as well. Of a U-Net for 256 by 256 places that third run takes 7 % longer than
those that follow, and 15 % longer by tiles.
"""

from __future__ import annotations

import resource
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

FEW_PAGES = 64
"""Of what takes no more, next to nothing of the time goes there."""
MOST_AGAIN = 2
"""A model may take memory in each of its runs, wherever it runs: then that is part of its time."""


@dataclass
class Steady:
    """Does again what took memory, and gives what the last time gave; `left` are the times that it may."""

    left: int = MOST_AGAIN

    def __call__(self, run: Callable[[], T]) -> T:
        """What a run gives, or some that belong together."""
        while self.left:
            before = _pages_taken()
            found = run()
            if _pages_taken() - before <= FEW_PAGES:
                return found
            self.left -= 1
        return run()


def _pages_taken() -> int:
    """How many pages this process was given so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
