"""What the original takes is looked at once, for a small share of the time: it may never end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import onnx
import pytest

from superopt.cost.child import Child, Unending
from superopt.cost.measured import MeasuredCost
from superopt.onnx_io import load, understand
from superopt.search.accepting.trial import Trial
from superopt.search.objectives.latency import Latency
from tests.onnx_io.models import model

LIMIT_S = 100.0


@pytest.mark.parametrize("is_otherwise", [True, False])
def test_an_original_that_does_not_end_is_given_up_after_its_share(
    cost: MeasuredCost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_otherwise: bool
) -> None:
    """It is told of where both are compared, with the time that this takes still there."""
    onnx.save(model("g (float[2] x) => (float[2] y) { y = Relu(x) }", 17), path := tmp_path / "original.onnx")
    program = replace(understand(load(path)), otherwise=is_otherwise)
    trial = Trial(program, path, path, tmp_path, Latency(cost), LIMIT_S, 0, [], lambda stage, done: None)
    allowed = list[float]()

    def call(child: Child, limit_s: float, function: Callable[..., object], *arguments: object) -> None:
        if function.__name__ == "time_once":
            allowed.append(limit_s)
            raise Unending("it did not end")

    monkeypatch.setattr(Child, "call", call)
    assert trial.original_s == 0.0
    assert allowed == ([pytest.approx(0.1 * LIMIT_S, abs=1.0)] if is_otherwise else [])
