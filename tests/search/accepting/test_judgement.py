"""What two files came to is not measured again: they are compared on inputs that were not tried before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import onnx
import pytest

import superopt
from superopt.api import Options
from superopt.cost.table import Table
from superopt.cost.timing import Key
from superopt.search.accepting import compared, judge
from superopt.search.accepting.agreement import Agreement
from superopt.search.accepting.fed import DRAWS, Fed
from superopt.search.accepting.judgement import Judgement, Question, question
from superopt.search.accepting.same import examine
from superopt.search.paired import Paired, Timed
from superopt.search.report import Report
from superopt.search.solving.remembered import Memory
from tests.models import normalized

KEY = Key("a runtime", "1", "a device", 1)


def judgement(low: float, ratio: float, high: float) -> Judgement:
    """Five sessions in which a candidate was so many times faster."""
    times = Timed(1.0, 0.9, 1.1, 5, 10)
    return Judgement(5, (Paired(times, times, ratio, low, high, 5, 10, (ratio,) * 5),), "2026-01-02T03:04:05+00:00")


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Two models."""
    paths = tmp_path / "a.onnx", tmp_path / "b.onnx"
    for size, path in zip((28, 30), paths, strict=True):
        superopt.onnx_io.save(superopt.onnx_io.load(normalized(size=size)), path, external_data=True)
    return paths


@pytest.fixture
def asked(table: Table, files: tuple[Path, Path]) -> Question:
    return question(Memory(table, KEY, "a way", 60.0), files, 0)


@pytest.fixture
def options(options: Options, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Options:
    """Enough time, and a gain of whole models that no noise leaves open."""
    (pair,) = judgement(1.1, 1.2, 1.3).pairs
    monkeypatch.setattr(judge, "compare", lambda *_, **__: pair)
    return replace(options, time=60, timings=tmp_path / "timings.sqlite")


def run(options: Options) -> Report:
    return superopt.optimize(normalized(), options).report


@pytest.mark.parametrize("interval", [(1.1, 1.2, 1.3), (0.9, 0.95, 1.0)])
def test_what_an_interval_settles_is_kept_whole(asked: Question, interval: tuple[float, float, float]) -> None:
    asked.keep(judgement(*interval))
    assert asked.recall() == judgement(*interval)


@pytest.mark.parametrize("interval", [(0.9, 1.2, 1.5), (0.99, 1.005, 1.02)])
def test_what_an_interval_leaves_open_is_measured_again(asked: Question, interval: tuple[float, float, float]) -> None:
    asked.keep(judgement(*interval))
    assert asked.recall() is None


GAIN, LOSS, OPEN = (1.1, 1.2, 1.3), (0.9, 0.95, 0.99), (0.9, 0.985, 1.08)


@pytest.mark.parametrize(
    ("intervals", "weighed", "kept"),
    [
        ([GAIN, LOSS], False, True),
        ([GAIN, OPEN], False, False),
        ([GAIN, (0.98, 0.995, 1.01)], False, True),
        ([LOSS], True, True),
        ([OPEN], True, False),
        ([(0.98, 1.0, 1.02), LOSS], True, True),
    ],
)
def test_a_loss_that_refuses_a_candidate_is_kept_where_its_interval_says_so(
    asked: Question, intervals: list[tuple[float, float, float]], weighed: bool, kept: bool
) -> None:
    pairs = tuple(pair for interval in intervals for pair in judgement(*interval).pairs)
    given = replace(judgement(*GAIN), pairs=pairs, weighed=weighed)
    asked.keep(given)
    assert asked.recall() == (given if kept else None)


def test_what_is_forgotten_is_not_recalled(asked: Question) -> None:
    asked.keep(judgement(1.1, 1.2, 1.3))
    asked.forget()
    assert asked.recall() is None


@pytest.mark.parametrize("damage", ["", "{}", "[1]", '{"samples": "many"}'])
def test_an_answer_that_cannot_be_read_is_none(asked: Question, damage: str) -> None:
    asked.memory.table.keep_answer(KEY, asked.asked, damage)
    assert asked.recall() is None


@pytest.mark.parametrize("changed", ["a.onnx", "a.onnx.data", "b.onnx", "b.onnx.data"])
def test_a_changed_byte_of_either_model_or_its_weights_is_another_question(
    asked: Question, files: tuple[Path, Path], changed: str
) -> None:
    path = files[0].parent / changed
    text = path.read_bytes()
    if changed.endswith(".onnx"):
        proto = onnx.load(path, load_external_data=False)
        proto.doc_string += "!"
        path.write_bytes(proto.SerializeToString())
    else:
        path.write_bytes(text[:-1] + bytes([text[-1] ^ 1]))
    assert question(asked.memory, files, 0).asked != asked.asked


def test_other_facts_another_way_or_the_models_swapped_are_another_question(
    asked: Question, files: tuple[Path, Path]
) -> None:
    others = [
        question(asked.memory, files, 1),
        question(replace(asked.memory, search_digest="another"), files, 0),
        question(asked.memory, files[::-1], 0),
    ]
    assert len({asked.asked, *(o.asked for o in others)}) == 4


def test_a_second_run_measures_nothing_and_says_when_it_was_measured(
    options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run(options)
    assert first.measured is not None
    assert not first.measured.remembered
    monkeypatch.setattr(judge, "compare", lambda *_, **__: pytest.fail("measured again"))
    second = run(options)
    assert second.outcome == first.outcome == "faster"
    assert second.measured == first.measured.model_copy(
        update={"remembered": True, "measured_at": second.measured.measured_at if second.measured else ""}
    )


def test_a_second_run_compares_on_other_inputs(options: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    seeds: list[tuple[int, int]] = []
    real: Callable[..., Agreement] = examine

    def told(*given: object, **named: object) -> Agreement:
        fed = given[4]
        assert isinstance(fed, Fed)
        seeds.append((fed.seed, len(fed.draws)))
        return real(*given, **named)

    monkeypatch.setattr(compared, "examine", told)
    first, second = run(options).compared, run(options).compared
    assert first is not None
    assert second is not None
    assert (first.samples, first.earlier, second.samples, second.earlier) == (5, 0, 1, 5)
    assert seeds == [(0, len(DRAWS)), (len(DRAWS), 1)]


def test_where_the_second_comparison_fails_the_whole_one_decides(
    options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(options)
    real: Callable[..., Agreement] = examine

    def unlike(*given: object, **named: object) -> Agreement:
        found = real(*given, **named)
        return replace(found, examined=False) if found.samples == 1 else found

    monkeypatch.setattr(compared, "examine", unlike)
    report = run(options)
    assert report.measured is not None
    assert report.compared is not None
    assert (report.outcome, report.measured.remembered, report.compared.samples) == ("faster", False, 5)
