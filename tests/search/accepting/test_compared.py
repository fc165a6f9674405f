"""Candidates whose outputs show little, compared by what they are made of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import onnx
import onnx.parser
import pytest

from superopt.cost.measured import MeasuredCost
from superopt.errors import VerificationFailed
from superopt.onnx_io import load, understand
from superopt.operators.constant import filled
from superopt.operators.definitions.pools import by_equal_weights
from superopt.operators.pointwise import Relu
from superopt.rules.format import parse_file
from superopt.search.accepting import compared as comparing
from superopt.search.accepting.agreement import Agreement
from superopt.search.accepting.compared import compared, rewritten_values
from superopt.search.accepting.fed import DRAWS, Allowed
from superopt.search.accepting.judge import written
from superopt.search.accepting.trial import Trial
from superopt.search.objectives.latency import Latency
from superopt.search.replay import Placement
from superopt.search.rewriting.rewrites import ByRule, Unfold
from superopt.term import Term
from tests.models import confident, detector, labelled, normalized, untrained
from tests.search.trying import tried

WRONG = "(rule wrong (given (?x n c h w)) (from (lrn 5 :alpha 0.10000000149011612 ?x)) (to (relu ?x)))"
WRONG_APART = WRONG.replace("0.10000000149011612", "0.20000000298023224")


def test_a_detector_that_finds_nothing_in_random_numbers_is_compared_within(cost: MeasuredCost, tmp_path: Path) -> None:
    found = tried(detector(), [Unfold("lrn")], cost, tmp_path)
    assert (found.accepted, found.reason) == (True, "confirmed in fresh sessions")
    assert found.agreement is not None
    assert (found.agreement.inner, found.agreement.examined, found.agreement.agrees) == (True, True, True)
    assert "found" not in {o.name for o in found.agreement.outputs}
    assert found.agreement.reason == "the original runs on none of the inputs, or gives nothing for them"
    assert max(o.error for o in found.agreement.outputs) > 0


def test_what_stands_before_a_head_of_zeros_is_compared_within(cost: MeasuredCost, tmp_path: Path) -> None:
    """The head's own piece is rewritten too, and its value shows nothing whatever is given."""
    given = untrained()
    found = tried(given, [Unfold("lrn")], cost, tmp_path)
    assert (found.accepted, found.reason) == (True, "confirmed in fresh sessions")
    assert found.agreement is not None
    assert (found.agreement.inner, found.agreement.examined, found.agreement.agrees) == (True, True, True)
    assert [o.name for o in found.agreement.outputs] == ["normal"]
    assert "constant" in found.agreement.reason


def test_a_label_that_is_always_the_same_is_told_of_by_the_scores_that_it_is_made_of(
    cost: MeasuredCost, tmp_path: Path
) -> None:
    found = tried(labelled(), [Unfold("lrn")], cost, tmp_path)
    assert (found.accepted, found.reason) == (True, "confirmed in fresh sessions")
    assert found.agreement is not None
    assert (found.agreement.inner, found.agreement.examined, found.agreement.agrees) == (False, True, True)
    assert '"label"' in found.agreement.reason


@pytest.mark.parametrize("of", ["apart", "inner"])
def test_a_label_is_told_of_by_inner_values_that_keep_their_name(of: str, cost: MeasuredCost, tmp_path: Path) -> None:
    found = tried(labelled(**{of: True}), [Unfold("lrn")], cost, tmp_path)
    assert (found.accepted, found.reason) == (True, "confirmed in fresh sessions")
    assert found.agreement is not None
    assert (found.agreement.inner, found.agreement.examined, found.agreement.agrees) == (True, True, True)
    assert "bent" in {o.name for o in found.agreement.outputs}
    assert '"label"' in found.agreement.reason


def test_what_a_label_alone_is_made_of_is_not_told_of_by_scores_beside_it(cost: MeasuredCost, tmp_path: Path) -> None:
    """A wrong rule, of which a label that is always the same shows nothing."""
    (rule,) = parse_file(WRONG_APART).rules
    found = tried(labelled(apart=True), [ByRule(rule)], cost, tmp_path)
    assert found.cover[0].gain > 1.0
    assert not found.accepted
    assert '"label"' in found.reason


def test_what_became_a_weight_is_not_examined_within(tmp_path: Path) -> None:
    onnx.save(detector(), tmp_path / "m.onnx")
    program = understand(load(tmp_path / "m.onnx"))
    boxes, scores = (program.values[n] for n in ("boxes", "scores"))
    bent, nothing = Relu()(boxes), filled(0.0, scores.shape)
    assert rewritten_values(program, Placement({"boxes": bent}, {}), tmp_path / "m.onnx") == {"boxes": boxes.type}
    assert rewritten_values(program, Placement({"boxes": bent, "scores": nothing}, {}), tmp_path / "m.onnx") == {}


@pytest.mark.parametrize("given", [detector, confident])
def test_a_difference_that_outputs_do_not_show_is_an_error(
    given: Callable[[], onnx.ModelProto], cost: MeasuredCost, tmp_path: Path
) -> None:
    (rule,) = parse_file(WRONG).rules
    with pytest.raises(VerificationFailed, match="differs from the original"):
        tried(given(), [ByRule(rule)], cost, tmp_path)


def test_what_stands_before_shares_that_are_always_the_same_is_compared_within(
    cost: MeasuredCost, tmp_path: Path
) -> None:
    found = tried(confident(), [Unfold("lrn")], cost, tmp_path)
    assert (found.accepted, found.reason) == (True, "confirmed in fresh sessions")
    assert found.agreement is not None
    assert (found.agreement.inner, found.agreement.examined, found.agreement.agrees) == (True, True, True)
    assert "shares" not in {o.name for o in found.agreement.outputs}


@pytest.mark.parametrize(
    ("kept_s", "one_by_one", "waits_s"), [(0.0, False, 50.0), (90.0, False, 10.0), (90.0, True, 50.0)]
)
def test_values_in_64_bits_are_waited_for_as_long_as_measuring_leaves_time(
    cost: MeasuredCost,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kept_s: float,
    one_by_one: bool,
    waits_s: float,
) -> None:
    """But where they are computed when all has run, whatever is kept."""
    onnx.save(normalized(), path := tmp_path / "original.onnx")
    trial = Trial(
        understand(load(path)), path, path, tmp_path, Latency(cost), 100.0, 0, [], progress=lambda stage, done: None,
        one_by_one=one_by_one, kept_s=kept_s,
    )  # fmt: skip
    seen: list[float] = []

    def examine(*_: object, allowed: Allowed, **__: object) -> Agreement:
        seen.append(allowed.until - trial.start)
        return Agreement(True, True, "", 1, ())

    monkeypatch.setattr(comparing, "examine", examine)
    assert compared(trial, path, Placement({}, {}), 0, ()).agrees
    assert seen == [pytest.approx(waits_s, abs=5.0)]


NEAREST = """<ir_version: 9, opset_import: ["": 17]>
g (float[1,1,40,40] x) => (int64[1,1,1,40] y) {
  cost = Floor (x)
  mean = AveragePool <kernel_shape = [5, 5], pads = [2, 2, 2, 2]> (cost)
  y = ArgMin <axis = 2> (mean)
}"""
"""The place of the least of means of whole numbers, many of which are equal: rounding tells which comes first."""


@pytest.mark.parametrize(("made", "rounds"), [(by_equal_weights, True), (lambda op, x: Relu()(op(x)), False)])
def test_what_rounding_decides_is_told_from_what_is_wrong_by_what_it_is_decided_by(
    made: Callable[..., Term | None], rounds: bool, cost: MeasuredCost, tmp_path: Path
) -> None:
    onnx.save(onnx.parser.parse_model(NEAREST), path := tmp_path / "original.onnx")
    program = understand(load(path))
    trial = Trial(
        program, path, path, tmp_path, Latency(cost), 100.0, 0, [], progress=lambda stage, done: None
    )  # fmt: skip
    mean = program.values["mean"]
    (term,) = (t for step in program.steps for t in step.terms if "mean" in step.outputs)
    replaced = made(term.operator, *term.inputs)
    assert replaced is not None
    assert replaced.type == mean.type
    placed = Placement({"mean": replaced}, {})
    found = compared(trial, written(program, placed, tmp_path / "candidate.onnx"), placed, 0, DRAWS)
    assert (found.agrees, found.rounds) == (False, rounds)
