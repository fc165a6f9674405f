"""Where a spelling overflows and its operator would not, the original's outputs are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import superopt
from superopt.api import Options
from superopt.cost.kernels import Kernel
from superopt.cost.measured import MeasuredCost
from superopt.search.rewriting.finders.masked import Masking
from superopt.search.rewriting.rewrites import Fold, Less, Rewrite, Unfold
from superopt.search.solving.spelled import without_differences
from superopt.term import Term, variables
from tests.models import model, normalized, weight
from tests.search.accepting.test_blank import CHOSEN, attention
from tests.search.trying import tried

SOFTMAX: list[Rewrite] = [Fold("softmax unshifted")]
ROWS = (64, 256)
STAY = (
    "; what is spelled out in it stays so, and nothing rounds more or spreads what is no number: else output "
    '"shares" is infinite or not a number'
)


def shares(given: onnx.ModelProto | None = None) -> onnx.ModelProto:
    """A softmax without its shift, which overflows on large inputs; beside a model, if one is given."""
    given = given or model([], [], [], {})
    graph = given.graph
    graph.node.append(helper.make_node("MatMul", ["rows", "mixed"], ["scores"]))
    graph.node.append(helper.make_node("Exp", ["scores"], ["each"]))
    graph.node.append(helper.make_node("ReduceSum", ["each", "last axis"], ["all"]))
    graph.node.append(helper.make_node("Div", ["each", "all"], ["shares"]))
    graph.initializer.append(onnx.numpy_helper.from_array(weight(ROWS[1], ROWS[1]), "mixed"))
    graph.initializer.append(onnx.numpy_helper.from_array(np.array([1], np.int64), "last axis"))
    graph.input.append(helper.make_tensor_value_info("rows", TensorProto.FLOAT, ROWS))
    graph.output.append(helper.make_tensor_value_info("shares", TensorProto.FLOAT, ROWS))
    return given


@pytest.fixture(autouse=True)
def gains(monkeypatch: pytest.MonkeyPatch) -> None:
    """What sums of kernels promise is gained by whole pieces, and by them in the whole model: which is the fastest is
    not what is looked at.
    """
    monkeypatch.setattr("superopt.search.objectives.latency._gain", lambda *_: 1.5)
    monkeypatch.setattr("superopt.search.optimize.as_read_if_faster", lambda cover, *_: cover)


def test_a_spelling_that_overflows_stays_and_what_else_was_found_is_taken(cost: MeasuredCost, tmp_path: Path) -> None:
    found = tried(shares(normalized()), [*SOFTMAX, Unfold("lrn")], cost, tmp_path, limit=20)
    assert found.accepted
    assert STAY in found.reason
    assert found.candidate is not None
    kinds = {node.op_type for node in onnx.load(found.candidate, load_external_data=False).graph.node}
    assert "Exp" in kinds
    assert not kinds & {"LRN", "Softmax"}


def test_where_nothing_else_was_found_the_original_comes_back(cost: MeasuredCost, tmp_path: Path) -> None:
    found = tried(shares(), SOFTMAX, cost, tmp_path, limit=20)
    assert not found.accepted
    assert found.reason.startswith(f"no rewrite makes a piece of it faster{STAY}")


def test_a_mask_by_a_product_is_left_where_it_spreads_what_is_no_number(
    cost: MeasuredCost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What chooses is dear here, whatever it takes on this machine, so that a product is found for it."""
    measured = MeasuredCost._in_place

    def in_place(self: MeasuredCost, kernel: Kernel, alone_s: float, blocks: Mapping[Term, bool]) -> float:
        chooses = kernel.root.operator.name == "where" and any(not v.constant for v in variables(kernel.root.inputs[1]))
        return measured(self, kernel, alone_s * (20.0 if chooses else 1.0), blocks)

    monkeypatch.setattr(MeasuredCost, "_in_place", in_place)
    found = tried(attention(CHOSEN), [Less(Masking)], cost, tmp_path, limit=20)
    assert not any(step.name == Masking.name for s in found.cover for step in s.winner.steps)
    assert 'else output "y" is not finite where rows of the inputs are zeros' in found.reason


def test_a_second_run_remembers_what_was_found_without(tmp_path: Path) -> None:
    options = Options(time=20, rules=(), timings=tmp_path / "table")
    first, second = (superopt.optimize(shares(normalized()), options).report for _ in range(2))
    assert first.searched.remembered == 0 < second.searched.remembered
    for report in (first, second):
        assert report.outcome == "faster"
        assert STAY in report.reason
    assert [s.text for s in first.solutions] == [s.text for s in second.solutions]


def test_a_definition_that_rounds_more_is_left_where_that_shows(cost: MeasuredCost, tmp_path: Path) -> None:
    """Far below 0 a softplus in steps is 0, and itself a small number."""
    nodes = [
        helper.make_node("Clip", ["x", "", "low"], ["at most"]),
        helper.make_node("Softplus", ["at most"], ["y"]),
    ]
    ends = [(name, TensorProto.FLOAT, [64, 256]) for name in "xy"]
    given = model(nodes, ends[:1], ends[1:], {"low": np.array(-25, np.float32)})
    found = tried(given, [Unfold("softplus in steps")], cost, tmp_path, limit=20)
    assert not found.accepted
    assert found.reason.startswith("no rewrite makes a piece of it faster; what is spelled out in it stays so")
    assert "differs from the original" in found.reason


def test_transforms_stay_too_where_rounding_shows() -> None:
    assert without_differences([Unfold("dft"), Unfold("stft"), Unfold("lrn")]) == [Unfold("lrn")]
