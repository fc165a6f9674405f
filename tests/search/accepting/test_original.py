"""What the original takes is looked at once, whatever ways there are to write it, and for a share of the time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import onnx
import pytest

from superopt.cost.child import Child, Unending
from superopt.cost.measured import MeasuredCost
from superopt.onnx_io import load, understand
from superopt.search.accepting.runs import Once
from superopt.search.accepting.trial import Trial
from superopt.search.objectives.latency import Latency
from tests.onnx_io.models import model

LIMIT_S = 100.0


def trial_of(cost: MeasuredCost, folder: Path, is_otherwise: bool) -> Trial:
    path = folder / "original.onnx"
    onnx.save(model("g (float[2] x) => (float[2] y) { y = Relu(x) }", 17), path)
    program = replace(understand(load(path)), otherwise=is_otherwise)
    return Trial(program, path, path, folder, Latency(cost), LIMIT_S, 0, [], lambda stage, done: None)


@pytest.mark.parametrize("is_otherwise", [True, False])
def test_the_original_is_run_where_nodes_are_written_otherwise(
    cost: MeasuredCost, tmp_path: Path, is_otherwise: bool
) -> None:
    found = trial_of(cost, tmp_path, is_otherwise).once
    assert found.loading_s > 0.0
    assert (found.running_s > 0.0) == is_otherwise


def test_another_way_to_write_it_takes_what_is_known(cost: MeasuredCost, tmp_path: Path) -> None:
    trial = trial_of(cost, tmp_path, is_otherwise=True)
    found = trial.once
    assert replace(trial, way="rows").once is found


@pytest.mark.parametrize("is_otherwise", [True, False])
def test_an_original_that_does_not_end_is_given_up_after_its_share(
    cost: MeasuredCost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_otherwise: bool
) -> None:
    """It is told of where both are compared, with the time that this takes still there; how long it loads is known."""
    trial, allowed = trial_of(cost, tmp_path, is_otherwise), list[float]()

    def call(child: Child, limit_s: float, function: Callable[..., Once], *arguments: object) -> Once:
        if arguments[-1] is None:
            return Once(1.0)
        allowed.append(limit_s)
        raise Unending("it did not end")

    monkeypatch.setattr(Child, "call", call)
    assert trial.once == Once(1.0)
    assert allowed == ([pytest.approx(0.2 * LIMIT_S, abs=1.0)] if is_otherwise else [])
