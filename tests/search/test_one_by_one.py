"""Large models: one of them in memory at a time."""

import weakref
from pathlib import Path
from typing import Any

import pytest

from superopt.cost.child import Here
from superopt.cost.inputs import Draw, Feeds
from superopt.cost.measured import MeasuredCost
from superopt.cost.ort import OnnxRuntime
from superopt.cost.runtime import Session
from superopt.cost.timed import time_in_turns
from superopt.cost.whole import take_much
from superopt.search.accepting.fed import Allowed
from superopt.search.accepting.judge import LARGE
from superopt.search.accepting.same import examine
from superopt.search.accepting.trial import Attempt
from superopt.search.paired import Paired, Timed, compare, faster
from superopt.search.rewriting.rewrites import Unfold
from superopt.search.rounds import Harness
from tests.models import normalized
from tests.search.networks import classifier, products
from tests.search.trying import tried

ALIVE: weakref.WeakSet[Any] = weakref.WeakSet()
MOST: list[int] = []


class Watched(OnnxRuntime):
    """Notes how many sessions there are when one is made."""

    def session(self, model: bytes | Path, optimize: bool = True, profile: Path | None = None) -> Session:
        made = super().session(model, optimize, profile)
        ALIVE.add(made)
        MOST.append(len(ALIVE))
        return made


@pytest.mark.parametrize(("one_by_one", "most"), [(True, 1), (False, 2)])
def test_so_many_sessions_are_alive_in_a_round(tmp_path: Path, one_by_one: bool, most: int) -> None:
    model = classifier(tmp_path / "a.onnx")
    MOST.clear()
    compare(model, model, Harness(Watched(), lock_directory=tmp_path, one_by_one=one_by_one), budget_s=0)
    assert max(MOST) == most


@pytest.mark.parametrize(("one_by_one", "most"), [(True, 1), (False, 2)])
def test_so_many_sessions_are_alive_where_pieces_are_timed(tmp_path: Path, one_by_one: bool, most: int) -> None:
    model = classifier(tmp_path / "a.onnx")
    MOST.clear()
    time_in_turns(Watched(), [model, model], draw=Draw(), one_by_one=one_by_one)
    assert max(MOST) == most


def test_a_model_with_twice_the_products_is_slower_one_by_one(tmp_path: Path) -> None:
    short, long = products(tmp_path / "a.onnx", 2), products(tmp_path / "b.onnx", 6)
    assert faster(compare(long, short, Harness(OnnxRuntime(), lock_directory=tmp_path, one_by_one=True), budget_s=3))
    assert (
        compare(short, long, Harness(OnnxRuntime(), lock_directory=tmp_path, one_by_one=True), budget_s=3).ratio < 0.7
    )


def test_large_models_are_evaluated_when_all_has_run_and_the_caller_rests(tmp_path: Path) -> None:
    model, happened = classifier(tmp_path / "a.onnx"), list[str]()

    class Noting(Here):
        def call(self, limit_s: float, function: Any, *arguments: Any) -> Any:
            happened.append("run")
            return super().call(limit_s, function, *arguments)

        def rest(self) -> None:
            happened.append("rest")

    def exact(feeds: Feeds, stopped: object = None, keep: object = None) -> list[None]:
        happened.append("exact")
        return [None]

    assert examine(model, model, OnnxRuntime(), exact, caller=Noting(), allowed=Allowed(one_by_one=True)).agrees  # type: ignore[arg-type]
    assert happened[happened.index("rest") :] == ["rest"] + 5 * ["exact"]
    assert "exact" not in happened[: happened.index("rest")]


@pytest.mark.parametrize(("size", "gain", "alone"), [(LARGE, 1.3, True), (LARGE, 1.1, False), (LARGE - 1, 1.3, False)])
def test_a_model_of_large_weights_is_measured_so_where_much_is_expected_to_be_gained(
    size: int, gain: float, alone: bool, cost: MeasuredCost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else wide intervals would leave it open."""
    asked = list[bool]()

    def compare(original: Path, candidate: Path, harness: Harness, **_: object) -> Paired:
        asked.append(harness.one_by_one)
        alone = Timed(0.01, 0.01, 0.01, 10, 100)
        return Paired(alone, alone, 1.3, 1.2, 1.4, 10, 100, (1.3,) * 10)

    monkeypatch.setattr("superopt.search.accepting.judge.compare", compare)
    monkeypatch.setattr(Attempt, "expected_gain", lambda *_: gain)
    assert tried(normalized(), [Unfold("lrn")], cost, tmp_path, size=size).accepted
    assert asked == [alone]


def test_a_model_takes_much_by_its_values_and_less_so_beside_many_weights() -> None:
    assert take_much(10**6, 143 * 10**6)
    assert not take_much(574 * 10**6, 143 * 10**6)
    assert not take_much(10**6, None)
