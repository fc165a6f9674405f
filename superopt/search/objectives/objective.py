"""What a search lessens: the time of an inference, or the bytes that it takes. Whatever it is, no answer is slower."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from superopt.cost.layouts import Place
from superopt.cost.measured import MeasuredCost
from superopt.cost.model import Cost
from superopt.onnx_io import Program
from superopt.search.settings import Setting
from superopt.search.strategies.found import Found, Outcome

LEAST_LESS = 1.01
"""How many times less an answer takes, at least, of what was to be lessened."""


@dataclass(frozen=True)
class Weighed:
    """What the original and a candidate take in bytes; `counted` is what was to be expected of both, where that was
    counted and the other measured.
    """

    original: int
    candidate: int
    counted: tuple[int, int] | None = None

    @property
    def is_less(self) -> bool:
        """Whether the candidate takes less."""
        return self.original >= LEAST_LESS * self.candidate


@dataclass(frozen=True)
class Objective(ABC):
    """What a search lessens. Seconds are what the `machine` measures, whatever the objective is.

    `better` says what a model is that takes less; `worth_trying` is how many times less a joined piece must
    cost than its parts together, by sums, to be looked at closely; `times_whole` whether all that `choose` adds to
    sums is times of whole graphs; `by_rows` whether rows of a batch may take less one after the other.
    """

    machine: MeasuredCost
    better: ClassVar[str] = "smaller"
    worth_trying: ClassVar[float] = LEAST_LESS
    times_whole: ClassVar[bool] = False
    by_rows: ClassVar[bool] = True

    @abstractmethod
    def cost(self, place: Place) -> Cost:
        """The cost of graphs that stand in a place."""

    @abstractmethod
    def choose(self, outcome: Outcome, place: Place, until: float = math.inf) -> tuple[Found, float, int]:
        """Of the graphs found the one that is to replace its piece, the start where none is; how many times less it
        takes; and how many graphs could not be tried. After `until`, a time of `time.monotonic`, it hurries.
        """

    def tries(self, outcome: Outcome) -> bool:
        """Whether `choose` looks at more of the graphs found than their costs."""
        return True

    def total(self, costs: Iterable[float]) -> float:
        """What the costs of a model's pieces come to together."""
        return sum(costs)

    def seconds(self, costs: Iterable[float]) -> float:
        """What an inference takes, by the costs of its pieces, as far as these tell."""
        return 0.0

    def weigh(
        self, program: Program, original: Path, candidate: Path, setting: Setting, longest_s: float
    ) -> Weighed | None:
        """What two models take in bytes, where that is the objective: what is run for that ends within `longest_s`
        seconds. Raises `RuntimeFailed`.
        """
        return None
