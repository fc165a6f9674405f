"""What a candidate and its original are compared on, and in what time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from superopt.cost.child import Ask
from superopt.cost.inputs import Draw, Feeds
from superopt.cost.runtime import Runtime
from superopt.search.accepting.runs import LONGEST_S, drawn
from superopt.search.settings import Setting

DRAWS = (
    Draw(scale=1.0),
    Draw(scale=0.1, size=2, below=2),  # padding, and words that are all alike
    Draw(scale=10.0),
    Draw(scale=1.0, offset=1.0, size=3),
    Draw(scale=255.0, uniform=True),  # pictures as they come
    Draw(blank=True),  # padding, silence, black
)
"""The last one only tells of numbers that are not finite. What is divided by its own length, or masked after that, is
none where a row is zeros; its errors say little, as the last bit of a zero is nothing, and so is all that rounds.
"""


@dataclass(frozen=True)
class Fed:
    """The inputs given, and random ones of several scales and offsets, of the sizes of each setting in turn."""

    inputs: Sequence[Feeds] = ()
    draws: Sequence[Draw] = DRAWS
    settings: Sequence[Setting] = (Setting(),)
    seed: int = 0

    def made(self, ask: Ask, runtime: Runtime, model: Path) -> tuple[list[Feeds], set[int]]:
        """All inputs for a model, without those that it does not accept, and the numbers of blank ones."""
        sized = [self.settings[i % len(self.settings)].draw(draw) for i, draw in enumerate(self.draws)]
        made = ask(drawn, runtime, model, self.seed, sized)
        blank = {i for i, number in enumerate(made, start=len(self.inputs)) if self.draws[number].blank}
        return [*self.inputs, *made.values()], blank


@dataclass(frozen=True)
class Allowed:
    """All runs together take `longest_s` at most. Values in 64 bits are computed meanwhile, or where that is to be
    `one_by_one`, afterwards; for those nobody waits beyond `until`, a time of `time.monotonic`.
    """

    longest_s: float = LONGEST_S
    until: float = math.inf
    one_by_one: bool = False


EVERY_DRAW, UNHURRIED = Fed(), Allowed()
