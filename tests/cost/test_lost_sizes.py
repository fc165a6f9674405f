"""Kernels that the runtime fuses only where it knows sizes are timed as it leaves them in their model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from superopt.cost import alone
from superopt.cost.bench import Bench
from superopt.cost.child import Here
from superopt.cost.inputs import Draw
from superopt.cost.measured import MeasuredCost
from superopt.cost.ort import OnnxRuntime
from superopt.cost.table import Table
from superopt.cost.timing import Timing
from superopt.demands import assuming
from superopt.dim import symbol
from superopt.operators.norms import LayerNorm
from superopt.operators.pointwise import Add
from superopt.term import REAL, Term, variable
from tests.cost.graphs import graph, left_of, weight

RUNTIME = OnnxRuntime()


def timed(normal: Term, lost: bool, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], list[str]]:
    """What onnxruntime leaves of the kernel that is timed last, at eight rows, and what the table then has."""
    left: list[list[str]] = []

    def noted(_: OnnxRuntime, path: Path, draw: Draw) -> Timing:
        session = RUNTIME.session(path)
        assert [v.shape for v in RUNTIME.run(session, RUNTIME.feeds(session, 0, draw))] in ([(1, 8, 16)], [(1,)])
        left.append([node.op_type for node in left_of(path, folder)])
        return Timing(1e-5 * len(left), 0.0, 5)

    monkeypatch.setattr(alone, "time_alone", noted)
    here: Any = Here()
    with Table(Path(":memory:")) as table:
        cost = MeasuredCost(Bench(RUNTIME, table, 17, {"n": 8}, child=here, lock_directory=folder, loses_sizes=lost))
        cost.cost(graph(normal))
        return left[-1], [row.signature for row in table.rows()]


@pytest.mark.parametrize("lost", [False, True])
def test_a_sum_and_its_norm_are_timed_as_the_runtime_leaves_them_in_the_model(
    lost: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y = (variable(name, (1, symbol("n"), 16), REAL) for name in "xy")
    with assuming():
        normal = LayerNorm(2)(Add()(x, y), weight("scale", 16), weight("shift", 16))
    left, known = timed(normal, lost, tmp_path, monkeypatch)
    assert left == (["Add", "LayerNormalization"] if lost else ["SkipLayerNormalization"])
    assert any(s.endswith("of sizes that are not declared") for s in known) is lost, known


def test_a_norm_that_is_not_fused_is_timed_once_for_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x = variable("x", (1, symbol("n"), 16), REAL)
    with assuming():
        normal = LayerNorm(2)(x, weight("scale", 16), weight("shift", 16))
    assert timed(normal, True, tmp_path, monkeypatch) == timed(normal, False, tmp_path, monkeypatch)
