"""A whole attempt on a model, with a few rewrites."""

from __future__ import annotations

import time
from pathlib import Path

import onnx

from superopt.cost.measured import MeasuredCost
from superopt.onnx_io import load, understand
from superopt.search.accepting.trial import Attempt, Trial
from superopt.search.objectives.latency import Latency
from superopt.search.optimize import attempt
from superopt.search.rewriting.rewrites import Rewrite
from superopt.search.settings import Setting
from superopt.search.strategies.backtrack import backtrack
from superopt.search.strategies.found import Strategy


def tried(
    given: onnx.ModelProto,
    rewrites: list[Rewrite],
    cost: MeasuredCost,
    folder: Path,
    limit: float = 12,
    strategy: Strategy = backtrack,
    gone: float = 0.0,
    settings: int = 1,
    size: int = 0,
) -> Attempt:
    onnx.save(given, folder / "original.onnx")
    path = folder / "original.onnx"
    program, start = understand(load(given)), time.monotonic() - gone
    trial = Trial(
        program, path, path, folder, Latency(cost), limit, 0, inputs=[], progress=lambda stage, done: None, start=start,
        settings=(Setting(),) * settings, bytes=size,
    )  # fmt: skip
    return attempt(trial, lambda: rewrites, strategy, alpha=1.05)
