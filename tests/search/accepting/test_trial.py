"""What a trial tells of the model as it is given."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import onnx
import pytest

from superopt.cost.bench import Bench
from superopt.cost.measured import MeasuredCost
from superopt.cost.ort import OnnxRuntime
from superopt.cost.table import Table
from superopt.onnx_io import load, understand
from superopt.search.accepting.trial import Trial
from superopt.search.objectives.latency import Latency
from tests.models import normalized


@pytest.mark.parametrize("is_otherwise", [False, True])
def test_the_original_is_run_where_nodes_are_written_otherwise(
    is_otherwise: bool, table: Table, tmp_path: Path
) -> None:
    given, path = normalized(), tmp_path / "original.onnx"
    onnx.save(given, path)
    program = replace(understand(load(given)), otherwise=is_otherwise)
    cost = MeasuredCost(Bench(OnnxRuntime(), table, 17, lock_directory=tmp_path))
    trial = Trial(program, path, path, tmp_path, Latency(cost), 9.0, 0, [], progress=lambda stage, done: None)
    assert (trial.original_s > 0.0) == is_otherwise
