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

FEW_FAULTS = 16
"""Some are of the interpreter itself; what a model takes for its values is more by far."""
MOST_AGAIN = 1
"""A model may take memory in each of its runs, wherever it runs: then that is part of its time."""


@dataclass
class Steady:
    """Does again what took memory, and gives what the last time gave; `left` are the times that it may."""

    left: int = MOST_AGAIN

    def __call__(self, run: Callable[[], T]) -> T:
        """What a run gives, or some that belong together."""
        while self.left:
            before = _faults()
            found = run()
            if _faults() - before <= FEW_FAULTS:
                return found
            self.left -= 1
        return run()


def _faults() -> int:
    """How often this process came to a page that it had not yet, without reading a file for it."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
