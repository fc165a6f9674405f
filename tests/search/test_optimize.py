"""Acceptance of whole models: what differs is never written, what is not faster is not taken."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import superopt
from superopt.api import Options
from superopt.cost.kernels import Kernel, cut
from superopt.cost.layouts import ALONE, Place
from superopt.cost.measured import MeasuredCost
from superopt.cost.runtime import RuntimeFailed
from superopt.cost.table import Table
from superopt.errors import OutOfTime, RuleError, SuperoptError, VerificationFailed
from superopt.onnx_io import load, understand
from superopt.operators.constant import filled
from superopt.operators.declare import Declared
from superopt.operators.functions import Exp, Neg
from superopt.operators.linear import MatMul
from superopt.operators.pointwise import Add, Relu, Sqrt
from superopt.rules.format import parse_file
from superopt.search import solve
from superopt.search.compared import rewritten_values
from superopt.search.found import Found, Outcome
from superopt.search.latency import LATE_TIMED, MOST_TIMED, UNPROMISED_TIMED, Latency
from superopt.search.paired import Latency as Measured
from superopt.search.paired import Paired
from superopt.search.reference import reference_of
from superopt.search.replay import Placement
from superopt.search.rewrites import ByRule, Unfold
from superopt.search.same import DRAWS
from superopt.term import Graph, Term, variable
from tests.fragile import Fragile
from tests.models import detector, model, normalized, unsimplified
from tests.onnx_io.networks import run
from tests.search.trying import tried

WRONG = "(rule wrong (given (?x n c h w)) (from (lrn 5 :alpha 0.10000000149011612 ?x)) (to (relu ?x)))"


def test_where_a_candidate_cannot_be_written_the_original_comes_back(
    cost: MeasuredCost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rewritten(*_: object) -> None:
        raise SuperoptError("it would make a cycle")

    monkeypatch.setattr("superopt.search.judge.rewritten", rewritten)
    found = tried(normalized(), [Unfold("lrn")], cost, tmp_path)
    assert (found.accepted, found.candidate) == (False, None)
    assert found.reason == "what was found cannot be written: it would make a cycle"


def test_a_candidate_that_differs_is_an_error(cost: MeasuredCost, tmp_path: Path) -> None:
    """A wrong rule, as no file could bring it in: it is fast, and it is refused by its outputs."""
    (rule,) = parse_file(WRONG).rules
    with pytest.raises(VerificationFailed, match="differs from the original"):
        tried(normalized(), [ByRule(rule)], cost, tmp_path)


def test_a_difference_counts_also_beside_an_output_that_shows_nothing(cost: MeasuredCost, tmp_path: Path) -> None:
    given = normalized()
    given.graph.node.append(helper.make_node("Mul", ["image", "nil"], ["silent"]))
    given.graph.initializer.append(onnx.numpy_helper.from_array(np.zeros(1, np.float32), "nil"))
    given.graph.output.append(helper.make_tensor_value_info("silent", TensorProto.FLOAT, [1, 3, 28, 28]))
    (rule,) = parse_file(WRONG).rules
    with pytest.raises(VerificationFailed, match='"answer"'):
        tried(given, [ByRule(rule)], cost, tmp_path)


def test_a_detector_that_finds_nothing_in_random_numbers_is_compared_within(cost: MeasuredCost, tmp_path: Path) -> None:
    found = tried(detector(), [Unfold("lrn")], cost, tmp_path)
    assert (found.accepted, found.reason) == (True, "confirmed in fresh sessions")
    assert found.agreement is not None
    assert (found.agreement.inner, found.agreement.examined, found.agreement.agrees) == (True, True, True)
    assert "found" not in {o.name for o in found.agreement.outputs}
    assert found.agreement.reason == "the original runs on none of the inputs, or gives nothing for them"
    assert found.agreement.error > 0


def test_what_became_a_weight_is_not_examined_within(tmp_path: Path) -> None:
    onnx.save(detector(), tmp_path / "m.onnx")
    program = understand(load(tmp_path / "m.onnx"))
    boxes, scores = (program.values[n] for n in ("boxes", "scores"))
    bent, nothing = Relu()(boxes), filled(0.0, scores.shape)
    assert rewritten_values(program, Placement({"boxes": bent}, {}), tmp_path / "m.onnx") == {"boxes": boxes.type}
    assert rewritten_values(program, Placement({"boxes": bent, "scores": nothing}, {}), tmp_path / "m.onnx") == {}


def test_a_difference_that_outputs_do_not_show_is_an_error(cost: MeasuredCost, tmp_path: Path) -> None:
    (rule,) = parse_file(WRONG).rules
    with pytest.raises(VerificationFailed, match="differs from the original"):
        tried(detector(), [ByRule(rule)], cost, tmp_path)


@pytest.mark.parametrize("later", [1.2, 1.0])
def test_a_candidate_that_is_not_confirmed_is_tried_without_what_gains_nothing_and_has_to_be_surer(
    cost: MeasuredCost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, later: float
) -> None:
    asked: list[int] = []

    def compare(*_: object, **given: int) -> Paired:
        asked.append(given["asked"])
        ratio, alone = (1.0, later)[len(asked) - 1], Measured(0.01, 0.01, 0.01, 10, 100)
        return Paired(alone, alone, ratio, ratio - 0.01, ratio + 0.01, 10, 100, (ratio,) * 10)

    monkeypatch.setattr("superopt.search.judge.compare", compare)
    monkeypatch.setattr("superopt.search.optimize.surest", lambda tried, trial, end: list(tried.cover))
    found = tried(normalized(), [Unfold("lrn")], cost, tmp_path)
    assert asked == [1, 2]
    assert found.accepted == (later > 1.0)
    assert found.pairs[0][1].ratio == later
    confirmed = "confirmed in fresh sessions, without pieces that gain nothing in the whole model"
    assert found.reason == (confirmed if found.accepted else "the gain was not confirmed in fresh sessions")


def test_without_time_to_judge_what_it_finds_nothing_is_searched(
    cost: MeasuredCost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Latency, "seconds", lambda self, costs: 1.0)
    found = tried(normalized(), [Unfold("lrn")], cost, tmp_path)
    assert (found.accepted, found.solved) == (False, [])
    assert found.reason == "comparing and measuring a candidate takes about 80 s; allow more with --time"


def test_what_reading_the_model_and_the_rules_took_is_of_the_time_limit(cost: MeasuredCost, tmp_path: Path) -> None:
    cost.deadline = math.inf
    assert tried(normalized(), [Unfold("lrn")], cost, tmp_path).accepted, "all kernels are known from here on"
    found = tried(normalized(), [Unfold("lrn")], cost, tmp_path, limit=12, gone=12)
    assert (found.accepted, found.solved) == (False, [])
    assert found.reason.endswith("allow more with --time")


def test_where_its_kernels_take_all_the_time_that_is_what_is_said(
    cost: MeasuredCost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pipelines of a thousand small nodes: their kernels take seconds to time, and the whole model none."""

    def late(*asked: object) -> dict[object, float]:
        starts: dict[object, float] = start_costs(*asked)
        cost.deadline = time.monotonic()
        return starts

    start_costs: Callable[..., dict[object, float]] = solve._start_costs
    monkeypatch.setattr(solve, "_start_costs", late)
    found = tried(normalized(), [Unfold("lrn")], cost, tmp_path)
    assert (found.accepted, found.solved) == (False, [])
    assert found.reason == "timing its kernels took all the time that there is for a search; allow more with --time"


def test_a_candidate_that_takes_too_long_to_measure_is_no_answer(
    cost: MeasuredCost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = []

    def compare(*_: object, most_s: float, **__: object) -> None:
        given.append(most_s)
        raise OutOfTime("measuring takes about 9 s")

    monkeypatch.setattr("superopt.search.judge.compare", compare)
    found = tried(normalized(), [Unfold("lrn")], cost, tmp_path, limit=4)
    assert not found.accepted
    assert re.fullmatch(r"measuring takes about 9 s, and [0-4] s were left; allow more with --time", found.reason)
    assert 0.4 <= given[0] <= 4.4


def test_a_model_that_crashes_the_runtime_comes_back_and_the_kernel_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    nodes = [helper.make_node("Sqrt", ["x"], ["h"]), helper.make_node("Relu", ["h"], ["y"])]
    given = model(nodes, [("x", TensorProto.FLOAT, (2, 3))], [("y", TensorProto.FLOAT, (2, 3))])
    cost = MeasuredCost(Fragile(1), Table(tmp_path / "t.sqlite"), 17, lock_directory=tmp_path)
    found = tried(given, [Unfold("lrn")], cost, tmp_path)
    assert not found.accepted
    assert "the runtime crashed (SIGABRT)" in found.reason
    assert "(kernel (sqrt ?v0)" in found.reason


def test_a_wrong_rule_in_a_file_is_refused_before_it_is_tried(options: Options, tmp_path: Path) -> None:
    path = tmp_path / "w.rules"
    path.write_text(WRONG)
    with pytest.raises(RuleError, match="rule wrong does not prove"):
        superopt.optimize(normalized(), replace(options, rules=(path,)))


def test_a_right_rewrite_is_accepted_and_confirmed(cost: MeasuredCost, tmp_path: Path) -> None:
    found = tried(normalized(), [Unfold("lrn")], cost, tmp_path)
    assert (found.accepted, found.reason) == (True, "confirmed in fresh sessions")
    assert found.agreement is not None
    assert found.agreement.agrees
    assert [paired.low > 1.0 for _, paired in found.pairs] == [True]


def test_constants_that_the_runtime_makes_anew_are_a_gain_without_any_rewrite(
    cost: MeasuredCost, tmp_path: Path
) -> None:
    found = tried(unsimplified(6, side=56), [], cost, tmp_path)
    assert (found.accepted, found.reason) == (True, "confirmed in fresh sessions")
    assert found.candidate is not None
    assert "CastLike" not in {node.op_type for node in load(found.candidate).graph}


def test_they_are_weights_within_what_is_rewritten_too(cost: MeasuredCost, tmp_path: Path) -> None:
    (rule,) = parse_file("(rule once (given (?x n c h w)) (from (relu (relu ?x))) (to (relu ?x)))").rules
    found = tried(unsimplified(6, side=56, relus=3), [ByRule(rule)], cost, tmp_path)
    assert (found.accepted, [s.gain > 1.0 for s in found.cover]) == (True, [True] * len(found.cover))
    assert found.candidate is not None
    assert {node.op_type for node in load(found.candidate).graph} == {"Conv", "BatchNormalization", "Relu"}


def test_without_rewrites_the_original_is_measured_alone(cost: MeasuredCost, tmp_path: Path) -> None:
    found = tried(normalized(), [], cost, tmp_path)
    assert (found.accepted, found.candidate, found.pairs) == (False, None, [])
    assert found.alone is not None
    assert found.alone.seconds > 0


@pytest.mark.parametrize(("batch", "side"), [(1, 28), ("N", "side")])
def test_the_reference_is_what_the_runtime_computes(batch: int | str, side: int | str) -> None:
    given = normalized(batch=batch, size=side)
    reference = reference_of(understand(load(given)))
    assert reference is not None
    seen = 0
    for size in {draw.size for draw in DRAWS} if batch == "N" else {1}:
        shape = (size, 3, 28, 28) if batch == "N" else (1, 3, 28, 28)
        feeds = {"image": np.random.default_rng(size).standard_normal(shape).astype(np.float32)}
        (exact,), (found,) = reference(feeds), run(given, feeds)
        assert exact is not None
        assert np.abs(exact - found).max() <= 1e-5 * np.abs(found).max()
        seen += 1
    assert seen


def test_there_is_no_reference_beside_an_opaque_node() -> None:
    ends = [(n, TensorProto.FLOAT, [2, 2]) for n in "xy"]
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Asinh", ["r"], ["y"])]
    assert reference_of(understand(load(model(nodes, ends[:1], ends[1:])))) is None


def test_what_measures_as_the_original_is_no_rewrite(cost: MeasuredCost, tmp_path: Path) -> None:
    """Addition the other way round is another graph and no gain."""
    ends = [(n, TensorProto.FLOAT, [64, 256]) for n in "xzy"]
    given = model(
        [helper.make_node("Add", ["x", "z"], ["a"]), helper.make_node("Relu", ["a"], ["y"])], ends[:2], ends[2:]
    )
    text = "(rule swap (given (?x n c) (?y n c)) (from (relu (add ?x ?y))) (to (relu (add ?y ?x))))"
    (rule,) = parse_file(text).rules
    found = tried(given, [ByRule(rule)], cost, tmp_path)
    assert not found.accepted
    assert found.reason


def test_every_rewrite_in_a_report_says_how_it_is_known(options: Options) -> None:
    report = superopt.optimize(normalized(), options).report
    assert report.rewrites
    for rewrite in json.loads(report.model_dump_json())["rewrites"]:
        assert rewrite["known"] in ("proved", "definition")
        assert bool(rewrite["by"]) == (rewrite["known"] == "proved")
        assert rewrite["times"] >= 1
        assert rewrite["value"] in {"c", "r", "normal", "answer"}


class Unmeasured(MeasuredCost):
    """Says what graphs take as a whole without a runtime, where a test says what that is."""

    def __init__(self) -> None:
        pass

    def breakdown(self, graph: Graph) -> list[tuple[Kernel, float]]:
        return [(kernel, 0.0) for kernel in cut(graph)]


def test_a_graph_that_keeps_no_promise_does_not_end_the_search_for_one_that_does() -> None:
    """The first of two is no faster in context, so the second is tried; it gains what it promised, and is taken."""
    x = variable("x", (2, 3), "float32")
    costs = ((x, 1.0), (Relu()(x), 0.93), (Sqrt()(x), 0.95))
    start, first, second = (Found(Graph((x,), (term,)), seconds, ()) for term, seconds in costs)

    class Whole(Unmeasured):
        def whole(self, original: Graph, candidate: Graph) -> tuple[float, float]:
            return 1.5, 1.51 if candidate.outputs == first.graph.outputs else 1.45

    best, gain, untried = Latency(Whole()).choose(Outcome(start, [first, second]), ALONE)
    assert (best, untried) == (second, 0)
    assert gain == pytest.approx(1.5 / 1.45), "its kernels take longer where they do not find all in the caches"


@pytest.mark.parametrize(
    ("promised", "until", "expected", "untimed"),
    [
        pytest.param(1.05, math.inf, MOST_TIMED, 0, id="in time"),
        pytest.param(1.05, 0.0, LATE_TIMED, 1, id="late"),
        pytest.param(1.00, math.inf, UNPROMISED_TIMED, 0, id="nothing is promised"),
        pytest.param(1.00, 0.0, 0, 1, id="late and nothing is promised"),
    ],
)
@pytest.mark.parametrize("fails", [False, True])
def test_graphs_are_timed_whole_as_long_as_there_is_time_and_something_promised(
    promised: float, until: float, expected: int, untimed: int, fails: bool
) -> None:
    """And where not all were timed that were to be, that is said."""
    x = variable("x", (2, 3), "float32")
    term, found, timed = x, list[Found](), list[Graph]()
    start = Found(Graph((x,), (x,)), 1.0, ())
    for _ in range(MOST_TIMED + 2):
        term = Relu()(Sqrt()(term))
        found.append(Found(Graph((x,), (term,)), 1.0 / promised, ()))

    class Whole(Unmeasured):
        def whole(self, original: Graph, candidate: Graph) -> tuple[float, float]:
            timed.append(candidate)
            if fails:
                raise RuntimeFailed("it crashed")
            return 1.0, 1.0

    best, _, missed = Latency(Whole()).choose(Outcome(start, found), ALONE, until)
    assert best is start
    assert len(set(timed)) == len(timed) == expected
    assert missed == untimed + (expected if fails else 0)


def test_who_is_late_takes_the_first_that_gains() -> None:
    x, timed = variable("x", (2, 3), "float32"), list[Graph]()
    costs = ((x, 1.0), (Relu()(x), 0.9), (Sqrt()(x), 0.91))
    start, *found = (Found(Graph((x,), (term,)), seconds, ()) for term, seconds in costs)

    class Whole(Unmeasured):
        def whole(self, original: Graph, candidate: Graph) -> tuple[float, float]:
            timed.append(candidate)
            return 1.0, 0.97

    best, _, untimed = Latency(Whole()).choose(Outcome(start, found), ALONE, until=0.0)
    assert (best, timed, untimed) == (found[0], [found[0].graph], 1)


def test_what_is_less_work_is_timed_beside_another_that_gains() -> None:
    """It promises nothing, so it is not among those that may gain more, and gains most."""
    x, w, a, b = (variable(n, (64, 64), "float32", constant=n != "x") for n in "xwab")
    given = Add()(MatMul()(x, w), MatMul()(MatMul()(x, a), b))
    less, other = MatMul()(x, Add()(w, MatMul()(a, b))), Relu()(given)
    costs = ((given, 1.0), (less, 1.0), (other, 1 / 1.04))
    start, light, promising = (Found(Graph((x, w, a, b), (term,)), seconds, ()) for term, seconds in costs)

    class Whole(Unmeasured):
        def whole(self, original: Graph, candidate: Graph) -> tuple[float, float]:
            return 1.0, 1.0 / (1.07 if candidate.outputs == light.graph.outputs else 1.04)

    best, gain, _ = Latency(Whole()).choose(Outcome(start, [start, promising, light]), ALONE)
    assert (best, gain) == (light, pytest.approx(1.07))


def test_a_whole_time_tells_which_graph_is_timed_next() -> None:
    """Two share a kernel and promise most; as one of them gains nothing, the third comes before the other."""
    x, order = variable("x", (64, 64), "float32"), list[Term]()
    prices = {"relu": 1.0, "sqrt": 0.5, "exp": 0.3, "neg": 0.001}
    terms = (Relu()(Relu()(x)), Sqrt()(Exp()(x)), Neg()(Sqrt()(Exp()(x))), Relu()(Neg()(x)))

    class Whole(Unmeasured):
        def breakdown(self, graph: Graph) -> list[tuple[Kernel, float]]:
            return [(kernel, prices[kernel.root.operator.name]) for kernel in cut(graph)]

        def whole(self, original: Graph, candidate: Graph) -> tuple[float, float]:
            order.append(candidate.outputs[0])
            return 1.0, 1.0

    cost = Whole()
    start, *found = (Found(Graph((x,), (t,)), sum(s for _, s in cost.breakdown(Graph((x,), (t,)))), ()) for t in terms)
    Latency(cost).choose(Outcome(start, found), ALONE)
    assert [terms.index(term) for term in order] == [1, 3, 2]


@pytest.mark.parametrize("which", [Relu, Sqrt])
def test_the_start_is_not_timed_beside_itself(which: type[Declared]) -> None:
    x = variable("x", (2, 3), "float32")
    start, again = (Found(Graph((x,), (which()(x),)), 1.0, ()) for _ in range(2))

    class Whole(Unmeasured):
        def whole(self, original: Graph, candidate: Graph) -> tuple[float, float]:
            raise AssertionError(f"{candidate} is the original")

    assert Latency(Whole()).choose(Outcome(start, [again]), ALONE) == (start, 1.0, 0)


@pytest.mark.parametrize(("around_s", "expected"), [(1.0, 2.0 / 1.95), (3.0, 1 / 0.95)], ids=["half", "most"])
def test_what_stands_around_a_piece_gains_nothing(around_s: float, expected: float) -> None:
    """Of four seconds with what stands around, sums say that a half is the piece's own, or less than its sum."""
    x = variable("x", (1, 16, 3, 3), "float32")
    start, better = (Found(Graph((x,), (term,)), s, ()) for term, s in ((Relu()(x), 1.0), (Sqrt()(x), 0.95)))

    class Whole(Unmeasured):
        def estimate(self, *_: object) -> float:
            return start.cost + around_s

        def whole(self, original: Graph, candidate: Graph) -> tuple[float, float]:
            return 4.0, 3.95

    _, gain, _ = Latency(Whole()).choose(Outcome(start, [better]), Place(frozenset("x")))
    assert gain == pytest.approx(expected)


@pytest.mark.parametrize(
    ("promised", "gained", "kept"),
    [(1.005, 1.04, True), (0.92, 1.04, True), (0.97, 1.01, False), (0.85, 1.04, False)],
    ids=["hardly promised", "promised to lose", "gained little", "promised to lose much"],
)
def test_what_is_less_work_is_timed_whole_though_its_sum_promises_little(
    promised: float, gained: float, kept: bool
) -> None:
    x, w, a, b = (variable(n, (64, 64), "float32", constant=n != "x") for n in "xwab")
    alone, beside = MatMul()(x, w), MatMul()(MatMul()(x, a), b)
    less = MatMul()(x, Add()(w, MatMul()(a, b)))
    start, better = (
        Found(Graph((x, w, a, b), (term,)), seconds, ())
        for term, seconds in ((Add()(alone, beside), 1.0), (less, 1.0 / promised))
    )

    class Whole(Unmeasured):
        def whole(self, original: Graph, candidate: Graph) -> tuple[float, float]:
            return 1.0, 1.0 / gained

    best, _, _ = Latency(Whole()).choose(Outcome(start, [start, better]), ALONE)
    assert best is (better if kept else start)


@pytest.mark.parametrize(
    ("promised", "gained", "kept"),
    [
        pytest.param(1.04, 1.04, True, id="both"),
        pytest.param(1.015, 1.01, True, id="both a little"),
        pytest.param(1.005, 1.015, False, id="hardly promised and measured a little"),
        pytest.param(0.99, 1.04, True, id="promised to lose a little and measured"),
        pytest.param(0.95, 1.04, False, id="promised to lose"),
        pytest.param(1.04, 1.002, False, id="hardly measured"),
        pytest.param(1.04, 0.99, False, id="measured to lose"),
    ],
)
def test_a_small_gain_is_one_where_sums_and_whole_times_agree_and_a_larger_one_where_sums_nearly_do(
    promised: float, gained: float, kept: bool
) -> None:
    x = variable("x", (2, 3), "float32")
    start, better = (
        Found(Graph((x,), (term,)), seconds, ()) for term, seconds in ((x, 1.0), (Relu()(x), 1.0 / promised))
    )

    class Whole(Unmeasured):
        def whole(self, original: Graph, candidate: Graph) -> tuple[float, float]:
            return 1.0, 1.0 / gained

    best, gain, _ = Latency(Whole()).choose(Outcome(start, [better]), ALONE)
    assert best is (better if kept else start)
    assert gain == pytest.approx(gained if kept else 1.0)
