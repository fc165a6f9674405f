"""Which differences of two models' times count as a gain."""

from itertools import chain, repeat
from pathlib import Path

import numpy as np
import pytest

from superopt.cost.ort import OnnxRuntime
from superopt.cost.runtime import RuntimeFailed
from superopt.errors import OutOfTime
from superopt.search.interval import interval
from superopt.search.paired import Latency, Paired, _measure, compare, faster, latency
from tests.search.networks import classifier, products

RUNTIME = OnnxRuntime()


def paired(ratio: float, low: float, high: float) -> Paired:
    some = Latency(1.0, 0.9, 1.1, 5, 15)
    return Paired(some, some, ratio, low, high, 5, 15, (ratio,) * 5)


def test_a_model_compared_with_itself_is_not_faster(tmp_path: Path) -> None:
    model = products(tmp_path / "a.onnx", 2)
    found = compare(model, model, RUNTIME, budget_s=3, lock_directory=tmp_path)
    assert not faster(found)
    # 95 % intervals miss 1 once in twenty times; that they miss it by a tenth is another matter.
    assert found.low < 1.1
    assert found.high > 0.9
    assert found.low <= found.ratio <= found.high


def test_a_model_with_twice_the_products_is_slower(tmp_path: Path) -> None:
    short, long = products(tmp_path / "a.onnx", 2), products(tmp_path / "b.onnx", 6)
    assert faster(compare(long, short, RUNTIME, budget_s=3, lock_directory=tmp_path))
    found = compare(short, long, RUNTIME, budget_s=3, lock_directory=tmp_path)
    assert not faster(found)
    assert found.ratio < 0.7
    assert found.candidate_s > found.original_s


def test_models_may_be_given_as_bytes(tmp_path: Path) -> None:
    model = classifier(tmp_path / "a.onnx").read_bytes()
    assert compare(model, model, RUNTIME, budget_s=0, lock_directory=tmp_path).original_s > 0


def test_five_sessions_and_two_runs_are_the_least_however_small_the_budget(tmp_path: Path) -> None:
    model, seen = classifier(tmp_path / "a.onnx"), list[tuple[int, int]]()
    found = compare(
        model, model, RUNTIME, sessions=1, budget_s=0, progress=lambda *p: seen.append(p), lock_directory=tmp_path
    )
    assert (found.sessions, found.runs, len(found.ratios)) == (5, 10, 5)
    assert seen == [(i, 5) for i in range(6)]


def test_what_would_take_too_long_ends_after_its_first_round(tmp_path: Path) -> None:
    model, seen = classifier(tmp_path / "a.onnx"), list[int]()
    with pytest.raises(OutOfTime, match=r"^measuring takes about \d+ s$"):
        compare(model, model, RUNTIME, progress=lambda n, _: seen.append(n), lock_directory=tmp_path, most_s=0.0)
    assert seen == [0]


@pytest.mark.parametrize(("fit", "sessions"), [(3.5, 3), (4.5, 4), (9.0, 5)])
def test_where_five_sessions_do_not_end_in_time_there_are_as_many_as_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fit: float, sessions: int
) -> None:
    clock = chain([0.0], repeat(10.0))
    monkeypatch.setattr("superopt.search.paired.time.monotonic", lambda: next(clock))
    monkeypatch.setattr("superopt.search.paired._round", lambda *a, **k: ([1.0] * 3, [0.7] * 3))
    seen = list[tuple[int, int]]()
    rounds = _measure(
        (b"", b""), RUNTIME, 5, 1.0, 0, lambda *p: seen.append(p), None, tmp_path, None, most_s=10.0 * fit
    )
    assert len(rounds) == sessions
    assert seen[-1] == (sessions, sessions)


def test_what_five_sessions_leave_open_is_looked_at_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("superopt.search.paired.LOOK_S", 0.1)
    seconds = iter([([1.0] * 3, [c] * 3) for c in (0.9, 1.1, 0.9, 0.9, 1.0, *[0.9] * 5)])
    monkeypatch.setattr("superopt.search.paired._round", lambda *a, **k: next(seconds))
    found = compare(b"", b"", RUNTIME, budget_s=3, lock_directory=tmp_path)
    assert found.sessions == 10
    assert faster(found)


@pytest.mark.parametrize("candidate", [0.9, 1.1])
def test_what_five_sessions_settle_is_not_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, candidate: float
) -> None:
    monkeypatch.setattr("superopt.search.paired._round", lambda *a, **k: ([1.0] * 3, [candidate] * 3))
    assert compare(b"", b"", RUNTIME, budget_s=60, lock_directory=tmp_path).sessions == 5


def test_looking_twice_finds_a_gain_where_there_is_none_at_most_once_in_twenty_times() -> None:
    rng, wrong = np.random.default_rng(0), 0
    for _ in range(400):
        ratios = np.exp(rng.normal(0, 0.02, 10))
        wrong += any(interval(list(ratios[:n]), 1, 0.975)[1] > 1 for n in (5, 10))
    assert wrong / 400 < 0.05


def test_latency_of_one_model_has_an_interval(tmp_path: Path) -> None:
    found = latency(products(tmp_path / "a.onnx", 2), RUNTIME, budget_s=1, lock_directory=tmp_path)
    assert 0 < found.low <= found.seconds <= found.high < 1
    assert found.sessions == 5
    assert found.runs >= 15


def test_a_model_that_does_not_load_is_a_named_error_on_one_line(tmp_path: Path) -> None:
    (tmp_path / "bad.onnx").write_bytes(b"no model")
    with pytest.raises(RuntimeFailed) as caught:
        latency(tmp_path / "bad.onnx", RUNTIME, lock_directory=tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (paired(1.02, 1.005, 1.03), True),
        (paired(1.005, 1.004, 1.006), False),  # certain, but too little
        (paired(1.20, 0.99, 1.40), False),  # much, but not certain
        (paired(0.80, 0.79, 0.81), False),
    ],
)
def test_faster_means_one_percent_and_an_interval_above_one(found: Paired, expected: bool) -> None:
    assert faster(found) is expected
