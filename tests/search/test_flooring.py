"""A floor below what is masked is tried where that is faster by itself, and again where a report says so."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import onnx
import pytest

from superopt.cost.measured import MeasuredCost
from superopt.onnx_io import load, understand
from superopt.search import sight, variants
from superopt.search.accepting.trial import Attempt, Trial
from superopt.search.flooring import flooring
from superopt.search.objectives.bytes_taken import Peak
from superopt.search.objectives.latency import Latency
from tests.onnx_io.models import model

SEEN = ", ".join("1" if j <= i else "0" for i in range(8) for j in range(8))
MASKED = model(
    f"""g (float[4, 8, 8] s, float[4, 8, 4] v) => (float[4, 8, 4] y)
    <float low = {{-inf}}, bool[8, 8] seen = {{{SEEN}}}>
    {{ x = Where(seen, s, low) p = Softmax<axis = -1>(x) y = MatMul(p, v) }}"""
)


@pytest.fixture
def trial(cost: MeasuredCost, tmp_path: Path) -> Trial:
    """A trial of scores of which some are masked."""
    path = tmp_path / "masked.onnx"
    onnx.save(MASKED, path)
    return Trial(understand(load(path)), path, path, tmp_path, Latency(cost), 1e3, 0, [], lambda stage, done: None)


def is_floored(trial: Trial) -> bool:
    return "Max" in [node.op_type for node in trial.program.model.graph]


@pytest.mark.parametrize(("ratio", "is_tried"), [(1.1, True), (1.0, False)])
def test_a_floor_that_is_faster_by_itself_is_tried(
    trial: Trial, monkeypatch: pytest.MonkeyPatch, ratio: float, is_tried: bool
) -> None:
    monkeypatch.setattr(sight, "glance", lambda *_, **__: ratio)
    found = flooring(trial)
    assert (found is not None and is_floored(found.trial)) is is_tried


def test_what_a_report_says_is_not_measured_again(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sight, "glance", lambda *_, **__: pytest.fail("measured"))
    found = flooring(replace(trial, way="floored"))
    assert found is not None
    assert is_floored(found.trial)


def test_it_is_of_no_use_for_less_memory(trial: Trial) -> None:
    assert flooring(replace(trial, objective=Peak(trial.cost), way="floored")) is None


def test_branches_have_none(trial: Trial) -> None:
    assert flooring(replace(trial, is_branch=True, way="floored")) is None


def test_what_gains_with_a_floor_is_the_answer_and_says_so(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sight, "glance", lambda *_, **__: 2.0)

    def solve(own: Trial, _: float) -> Attempt:
        return Attempt([], accepted=is_floored(own), reason="it is faster")

    told, found = variants.attempted(trial, solve)
    assert (told.way, found.accepted) == ("floored", True)
    assert "what is masked" in found.reason


@pytest.mark.parametrize(("left", "count"), [(0.2, 2), (0.02, 1)])
def test_it_is_not_tried_where_no_time_is_left_after_the_model_as_it_stands(
    trial: Trial, monkeypatch: pytest.MonkeyPatch, left: float, count: int
) -> None:
    monkeypatch.setattr(sight, "glance", lambda *_, **__: 1.02)
    tried = list[bool]()

    def solve(own: Trial, _: float) -> Attempt:
        tried.append(is_floored(own))
        return Attempt([], reason="it took too long to be compared")

    late = replace(trial, start=time.monotonic() - (1.0 - left) * trial.limit)
    assert not variants.attempted(late, solve)[1].accepted
    assert tried == [False, True][:count]


def test_what_inputs_mask_has_one_where_they_are_given(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    given = model(
        """g (float[4, 8, 8] s, float[4, 8, 4] v, bool[8] seen) => (float[4, 8, 4] y) <float low = {-inf}>
        { x = Where(seen, s, low) p = Softmax<axis = -1>(x) y = MatMul(p, v) }"""
    )
    monkeypatch.setattr(sight, "glance", lambda *_, **__: 2.0)
    own = replace(trial, program=understand(load(given)))
    assert flooring(own) is None
    assert flooring(replace(own, inputs=[{}])) is not None
    assert flooring(replace(own, way="floored")) is not None
