"""How often graphs are run in turns."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from pathlib import Path

import pytest
from onnx import parser

from superopt.cost.inputs import Argument, Draw, Feeds
from superopt.cost.ort import OnnxRuntime
from superopt.cost.runtime import Session
from superopt.cost.timed import LONG_ROUNDS, ROUNDS, ROUNDS_S, time_in_turns


@dataclass
class Told:
    """A run takes as long as it is told, and says that it took another time."""

    waits: float
    says: Iterator[float]

    def run(self) -> float:
        time.sleep(self.waits)
        return next(self.says)

    run_first = run


@dataclass(frozen=True)
class Scripted(OnnxRuntime):
    """Models named by a number, whose runs say in turn what stands there."""

    waits: float = 0.0
    says: dict[str, Sequence[float]] = field(default_factory=dict)

    def session(self, model: bytes | Path, optimize: bool = True, profile: Path | None = None) -> str:
        return str(model)

    def inputs(self, session: str) -> tuple[Argument, ...]:
        return ()

    def bound(self, session: str, feeds: Feeds) -> Told:  # type: ignore[override]
        return Told(self.waits, iter(self.says[session]))


def rounds(waits: float, ratios: Sequence[float]) -> int:
    """How many rounds are timed of two graphs, after two to warm up, in all."""
    both = {"a": [1.0] * (2 + len(ratios)), "b": [9.0, 9.0, *ratios]}
    return time_in_turns(Scripted(waits=waits, says=both), [Path("a"), Path("b")])[0].runs


@pytest.mark.parametrize(
    ("waits", "ratios", "expected"),
    [
        pytest.param(ROUNDS_S / 3, [2.0, 2.01, 1.99] + [2.0] * 20, LONG_ROUNDS, id="long and alike"),
        pytest.param(ROUNDS_S / 3, [2.0, 2.1, 1.99] + [2.0] * 20, ROUNDS[0], id="long and not alike"),
        pytest.param(0.0, [2.0] * (ROUNDS[1] + 9), ROUNDS[1], id="short"),
    ],
)
def test_graphs_are_run_in_turns_until_they_are_told_apart(waits: float, ratios: list[float], expected: int) -> None:
    assert rounds(waits, ratios) == 2 * expected  # in sessions made in one order, and in the other


@dataclass(frozen=True)
class FirstIsSlow(Scripted):
    """Of the sessions that are bound, every other is a tenth slower: the first of two."""

    made: list[str] = field(default_factory=list)

    def bound(self, session: str, feeds: Feeds) -> Told:  # type: ignore[override]
        slow = 1.1 if len(self.made) % 2 == 0 else 1.0
        self.made.append(session)
        return Told(self.waits, repeat(slow * self.says[session][0]))


def test_that_the_first_session_is_slower_makes_no_gain() -> None:
    runtime = FirstIsSlow(says={"a": [1.0], "b": [2.0]})
    a, b = time_in_turns(runtime, [Path("a"), Path("b")])
    assert b.seconds / a.seconds == pytest.approx(2.0)
    assert runtime.made == ["a", "b", "b", "a"]


@dataclass(frozen=True)
class Drawing(OnnxRuntime):
    """Counts how often inputs are drawn."""

    drawn: list[int] = field(default_factory=list)

    def feeds(self, session: Session, seed: int, draw: Draw | None = None) -> Feeds:
        self.drawn.append(seed)
        return super().feeds(session, seed, draw)


def test_graphs_that_ask_for_the_same_inputs_are_given_the_same(tmp_path: Path) -> None:
    models = [tmp_path / "relu.onnx", tmp_path / "abs.onnx", tmp_path / "longer.onnx"]
    for path, (op, size) in zip(models, (("Relu", 4), ("Abs", 4), ("Abs", 5)), strict=True):
        text = f'<ir_version: 8, opset_import: ["": 17]> g (float[{size}] x) => (float[{size}] y) {{ y = {op}(x) }}'
        path.write_bytes(parser.parse_model(text).SerializeToString())
    runtime = Drawing()
    assert len(time_in_turns(runtime, models)) == 3
    assert len(runtime.drawn) == 2
