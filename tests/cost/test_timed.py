"""How often graphs are run in turns."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from superopt.cost.ort import OnnxRuntime
from superopt.cost.runtime import Draw, Feeds
from superopt.cost.timed import LONG_ROUNDS, ROUNDS, ROUNDS_S, time_in_turns


@dataclass
class Told:
    """A run takes as long as it is told, and says that it took another time."""

    waits: float
    says: Iterator[float]

    def run(self) -> float:
        time.sleep(self.waits)
        return next(self.says)


@dataclass(frozen=True)
class Scripted(OnnxRuntime):
    """Models named by a number, whose runs say in turn what stands there."""

    waits: float = 0.0
    says: dict[str, Sequence[float]] = field(default_factory=dict)

    def session(self, model: bytes | Path, optimize: bool = True, profile: Path | None = None) -> str:
        return str(model)

    def feeds(self, session: str, seed: int, draw: Draw | None = None) -> Feeds:
        return {}

    def bound(self, session: str, feeds: Feeds) -> Told:  # type: ignore[override]
        return Told(self.waits, iter(self.says[session]))


def rounds(waits: float, ratios: Sequence[float]) -> int:
    """How many rounds are timed of two graphs, after two to warm up."""
    both = {"a": [1.0] * (2 + len(ratios)), "b": [9.0, 9.0, *ratios]}
    return time_in_turns(Scripted(waits=waits, says=both), [Path("a"), Path("b")])[0].runs


@pytest.mark.parametrize(
    ("waits", "ratios", "expected"),
    [
        pytest.param(ROUNDS_S / 4, [2.0, 2.01, 1.99] + [2.0] * 20, LONG_ROUNDS, id="long and alike"),
        pytest.param(ROUNDS_S / 4, [2.0, 2.1, 1.99] + [2.0] * 20, ROUNDS[0], id="long and not alike"),
        pytest.param(0.0, [2.0] * (ROUNDS[1] + 9), ROUNDS[1], id="short"),
    ],
)
def test_graphs_are_run_in_turns_until_they_are_told_apart(waits: float, ratios: list[float], expected: int) -> None:
    assert rounds(waits, ratios) == expected
