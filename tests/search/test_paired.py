"""Which differences of two models' times count as a gain."""

import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from itertools import chain, cycle, repeat
from pathlib import Path

import numpy as np
import pytest

from superopt.cost.ort import OnnxRuntime
from superopt.cost.runtime import Session
from superopt.errors import OutOfTime, RuntimeFailed
from superopt.search import paired
from superopt.search import rounds as rounds_module
from superopt.search.interval import interval
from superopt.search.paired import Paired, Timed, _ratio, compare, faster, latency
from superopt.search.rounds import FEWEST_SESSIONS, Harness, rounds_of
from tests.search.networks import classifier, products

RUNTIME = OnnxRuntime()


@pytest.fixture(autouse=True)
def whole_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as outside of tests: how many sessions fit into one is what is looked at."""
    monkeypatch.setattr(paired, "LOOK_S", 4.0)


def measured(ratio: float, low: float, high: float) -> Paired:
    some = Timed(1.0, 0.9, 1.1, 5, 15)
    return Paired(some, some, ratio, low, high, 5, 15, (ratio,) * 5)


def test_a_model_compared_with_itself_is_not_faster(tmp_path: Path) -> None:
    model = products(tmp_path / "a.onnx", 2)
    found = compare(model, model, Harness(RUNTIME, lock_directory=tmp_path), budget_s=3)
    assert not faster(found)
    # 95 % intervals miss 1 once in twenty times; that they miss it by a tenth is another matter.
    assert found.low < 1.1
    assert found.high > 0.9
    assert found.low <= found.ratio <= found.high


def test_a_model_with_twice_the_products_is_slower(tmp_path: Path) -> None:
    short, long = products(tmp_path / "a.onnx", 2), products(tmp_path / "b.onnx", 6)
    assert faster(compare(long, short, Harness(RUNTIME, lock_directory=tmp_path), budget_s=3))
    found = compare(short, long, Harness(RUNTIME, lock_directory=tmp_path), budget_s=3)
    assert not faster(found)
    assert found.ratio < 0.7
    assert found.candidate_s > found.original_s


def test_models_may_be_given_as_bytes(tmp_path: Path) -> None:
    model = classifier(tmp_path / "a.onnx").read_bytes()
    assert compare(model, model, Harness(RUNTIME, lock_directory=tmp_path), budget_s=0).original_s > 0


def test_six_sessions_and_two_runs_are_the_least_however_small_the_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds_module, "LOADING_SHARE", 0.0)  # sessions are made in no time
    model, seen = classifier(tmp_path / "a.onnx"), list[tuple[int, int]]()
    found = compare(
        model,
        model,
        Harness(RUNTIME, lock_directory=tmp_path),
        sessions=1,
        budget_s=0,
        progress=lambda *p: seen.append(p),
    )
    assert (found.sessions, found.runs, len(found.ratios)) == (6, 12, 6)
    assert seen == [(i, 6) for i in range(7)]


class SlowlyMade(OnnxRuntime):
    """A runtime whose sessions take long to be made."""

    def session(self, model: bytes | Path, optimize: bool = True, profile: Path | None = None) -> Session:
        time.sleep(0.05)
        return super().session(model, optimize, profile)


def test_sessions_that_take_long_to_be_made_are_run_for_a_part_of_that_however_small_the_budget(tmp_path: Path) -> None:
    model = classifier(tmp_path / "a.onnx")
    found = compare(model, model, Harness(SlowlyMade(), lock_directory=tmp_path), sessions=1, budget_s=0)
    assert found.sessions == 6
    assert found.runs > 10 * 12


def test_what_would_take_too_long_ends_after_its_first_round(tmp_path: Path) -> None:
    model, seen = classifier(tmp_path / "a.onnx"), list[int]()
    with pytest.raises(OutOfTime, match=r"^measuring takes about \d+ s$"):
        compare(
            model, model, Harness(RUNTIME, lock_directory=tmp_path), progress=lambda n, _: seen.append(n), most_s=0.0
        )
    assert seen == [0]


@pytest.mark.parametrize(("fit", "sessions"), [(3.5, 3), (4.5, 4), (9.0, 6)])
def test_where_six_sessions_do_not_end_in_time_there_are_as_many_as_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fit: float, sessions: int
) -> None:
    clock = chain([0.0], repeat(10.0))
    monkeypatch.setattr("superopt.search.rounds.time.monotonic", lambda: next(clock))
    monkeypatch.setattr("superopt.search.rounds._round", lambda *a, **k: ([1.0] * 3, [0.7] * 3))
    seen = list[tuple[int, int]]()
    harness = Harness(RUNTIME, lock_directory=tmp_path)
    rounds = rounds_of((b"", b""), harness, 6, 1.0, most_s=10.0 * fit, progress=lambda *p: seen.append(p))
    assert len(rounds) == sessions
    assert seen[-1] == (sessions, sessions)


@pytest.mark.parametrize(("before", "ends"), [(2, "late"), (3, "with what there is")])
def test_what_others_take_to_measure_is_of_the_time_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: int, ends: str
) -> None:
    """So many rounds are quick, and then another process keeps the lane until all time is over."""
    waits = chain(repeat(0.0, before), repeat(100.0))

    @contextmanager
    def taken(_: Path | None, wait_s: float) -> Iterator[None]:
        if next(waits) > wait_s:
            raise OutOfTime("another process has been measuring")
        yield

    monkeypatch.setattr("superopt.search.rounds.measuring", taken)
    monkeypatch.setattr("superopt.search.rounds._round", rounds(repeat(0.9)))
    with pytest.raises(OutOfTime) if ends == "late" else nullcontext():
        assert compare(b"", b"", Harness(RUNTIME, lock_directory=tmp_path), most_s=50).sessions == before


def rounds(candidates: Iterable[float]) -> Callable[..., list[list[float]]]:
    """Rounds in which the original takes a second, and the candidate so long."""
    seconds = iter(candidates)
    return lambda *a, **k: [[1.0] * 4, [next(seconds)] * 4]


def test_what_ten_sessions_leave_open_is_looked_at_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left_open = (0.9, 1.1, 1.0, 0.9, 0.9, 1.0, 0.8, 1.0, 0.9, 1.0)
    monkeypatch.setattr("superopt.search.rounds._round", rounds([*left_open, *[0.9] * 10]))
    found = compare(b"", b"", Harness(RUNTIME, lock_directory=tmp_path), budget_s=30)
    assert found.sessions == 20
    assert faster(found)


@pytest.mark.parametrize("candidate", [0.9, 1.1])
def test_what_ten_sessions_settle_is_not_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, candidate: float
) -> None:
    monkeypatch.setattr("superopt.search.rounds._round", rounds(repeat(candidate)))
    assert compare(b"", b"", Harness(RUNTIME, lock_directory=tmp_path), budget_s=60).sessions == 10


def test_sessions_of_models_that_take_long_are_as_many_as_a_look_has_time_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = itertools.count(0.0, 0.5)  # so each round takes half a second
    monkeypatch.setattr("superopt.search.rounds.time.perf_counter", lambda: next(clock))
    monkeypatch.setattr("superopt.search.rounds._round", rounds(repeat(0.9)))
    assert compare(b"", b"", Harness(RUNTIME, lock_directory=tmp_path), budget_s=60).sessions == 8


def test_who_is_first_goes_on_in_turns_where_a_second_look_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, orders = itertools.count(0.0, 0.55), list[bool]()

    def _round(*given: object) -> list[list[float]]:
        orders.append(bool(given[-1]))
        return [[1.0] * 4, [(0.8, 1.1)[len(orders) // 2 % 2]] * 4]  # which no seven rounds settle

    monkeypatch.setattr("superopt.search.rounds.time.perf_counter", lambda: next(clock))
    monkeypatch.setattr("superopt.search.rounds._round", _round)
    assert compare(b"", b"", Harness(RUNTIME, lock_directory=tmp_path), budget_s=60).sessions == 14
    assert orders == [False, True] * 7


def test_that_the_first_of_two_sessions_is_slower_neither_hides_a_gain_nor_makes_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for gain in (1.0, 1.02):
        luck = (0.999, 1.001, 1.002, 0.999, 1.001, 0.998, 1.0, 1.0, 1.001, 0.999)
        taken = [slow * x / gain for slow, x in zip(cycle((0.95, 1.05)), luck, strict=False)]
        monkeypatch.setattr("superopt.search.rounds._round", rounds([*taken, *taken]))
        found = compare(b"", b"", Harness(RUNTIME, lock_directory=tmp_path), budget_s=60)
        assert found.ratio == pytest.approx(gain, rel=0.003)
        assert faster(found) is (gain > 1)


def test_a_model_that_finds_its_weights_in_the_caches_every_other_turn_is_as_fast_as_itself() -> None:
    cold, warm = 1.1, 1.0  # there one is run after the other, and back it is run after itself
    there_and_back = [warm, cold] * 5, [cold, warm] * 5
    assert _ratio(*there_and_back) == pytest.approx(1.0)
    assert _ratio(there_and_back[0][:9], there_and_back[1][:9]) == pytest.approx(1.0)  # which a median of all is not
    assert _ratio([1.2], [1.0]) == pytest.approx(1.2)


def test_looking_twice_finds_a_gain_where_there_is_none_at_most_once_in_twenty_times() -> None:
    rng, wrong = np.random.default_rng(0), 0
    for _ in range(400):
        ratios = np.exp(rng.normal(0, 0.02, 20))
        ratios[::2] *= 1.03
        ratios[1::2] /= 1.03
        wrong += any(interval(list(ratios[:n]), 1, 0.975, kinds=2)[1] > 1 for n in (10, 20))
    assert wrong / 400 < 0.05


def test_what_is_measured_alone_and_takes_long_has_few_sessions(tmp_path: Path) -> None:
    found = latency(products(tmp_path / "a.onnx", 2), Harness(RUNTIME, lock_directory=tmp_path), budget_s=0.0)
    assert found.sessions == FEWEST_SESSIONS


def test_latency_of_one_model_has_an_interval(tmp_path: Path) -> None:
    found = latency(products(tmp_path / "a.onnx", 2), Harness(RUNTIME, lock_directory=tmp_path), budget_s=1)
    assert 0 < found.low <= found.seconds <= found.high < 1
    assert found.sessions >= 6
    assert found.runs >= 18


def test_a_model_that_does_not_load_is_a_named_error_on_one_line(tmp_path: Path) -> None:
    (tmp_path / "bad.onnx").write_bytes(b"no model")
    with pytest.raises(RuntimeFailed) as caught:
        latency(tmp_path / "bad.onnx", Harness(RUNTIME, lock_directory=tmp_path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (measured(1.02, 1.005, 1.03), True),
        (measured(1.005, 1.004, 1.006), False),  # certain, but too little
        (measured(1.20, 0.99, 1.40), False),  # much, but not certain
        (measured(0.80, 0.79, 0.81), False),
    ],
)
def test_faster_means_one_percent_and_an_interval_above_one(found: Paired, expected: bool) -> None:
    assert faster(found) is expected
