"""Models that are written otherwise before anything is searched: they are tried, and judged, also without rewrites."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from superopt.cost.measured import MeasuredCost
from superopt.errors import VerificationFailed
from superopt.search.accepting.trial import Attempt, Trial
from superopt.search.rewriting.rewrites import Unfold
from superopt.search.solving.remembered import Memory
from tests.models import model, normalized
from tests.search.trying import tried


@pytest.mark.parametrize("differs", [False, True])
def test_where_a_candidate_differs_a_model_that_is_read_otherwise_is_judged_without_rewrites(
    cost: MeasuredCost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, differs: bool
) -> None:
    placed = list[int]()

    def judging(given: Attempt, trial: Trial, found: Sequence[Any], memory: Memory | None) -> Attempt:
        placed.append(len(found))
        if differs:
            raise VerificationFailed("it differs, too")
        given.reason = "it is judged"
        return given

    def deciding_so(*_: Any) -> Attempt:
        raise VerificationFailed("it differs; nothing was written")

    monkeypatch.setattr("superopt.search.optimize.changes_more", lambda _: True)
    monkeypatch.setattr("superopt.search.optimize.may_differ", lambda _: False)
    monkeypatch.setattr("superopt.search.optimize.decided", deciding_so)
    monkeypatch.setattr("superopt.search.optimize.judged", judging)
    with pytest.raises(VerificationFailed, match="it differs; nothing") if differs else nullcontext():
        found = tried(normalized(), [Unfold("lrn")], cost, tmp_path)
        assert found.reason == "it is judged; no piece of it is replaced: else it differs"
        assert all(s.gain == 1.0 for s in found.cover)
    assert placed == [0]


def test_nodes_that_are_written_otherwise_are_tried_where_no_piece_gains(cost: MeasuredCost, tmp_path: Path) -> None:
    """A map that is sampled with corners, of which onnxruntime plans each place for each channel."""
    sizes = {"x": [1, 16, 32, 32], "at": [1, 32, 32, 2], "y": [1, 16, 32, 32]}
    ends = [(name, TensorProto.FLOAT, size) for name, size in sizes.items()]
    nodes = [helper.make_node("GridSample", ["x", "at"], ["y"], align_corners=1)]
    found = tried(model(nodes, ends[:2], ends[2:]), [], cost, tmp_path)
    assert found.accepted
    assert found.candidate is not None
    kinds = [n.op_type for n in onnx.load(found.candidate, load_external_data=False).graph.node]
    assert kinds[-2:] == ["Mul", "GridSample"]
