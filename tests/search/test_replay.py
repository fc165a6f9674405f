"""Replaying: what was found for a piece reads back as text, and fits wherever the same piece stands."""

from __future__ import annotations

import math

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest

from superopt.cost.analytic import AnalyticCost
from superopt.errors import UsageError
from superopt.onnx_io import load, rewritten, understand
from superopt.operators.picks import Take
from superopt.search.cutting.pieces import cut_into_pieces
from superopt.search.replay import fits, report_again
from superopt.search.report import OutputError, Report, Rewritten, Solution
from superopt.search.rewriting.matching import Matching
from superopt.search.rewriting.rewrites import Unfold
from superopt.search.solving.solution import MOST_NUMBERS, solution_text
from superopt.search.strategies.backtrack import backtrack
from superopt.search.strategies.found import Limits
from superopt.term import variable
from tests.models import normalized


@pytest.fixture(scope="module")
def found() -> Solution:
    """What a search makes of the model: its normalization by definition."""
    (piece,) = cut_into_pieces(understand(load(normalized())))
    outcome = backtrack(piece.canonical, Matching([Unfold("lrn")]), AnalyticCost(), Limits(alpha=100.0, keep=9))
    winner = next(f for f in outcome.best if f.steps)
    text = solution_text(piece.canonical.outputs, winner.graph.outputs, piece.canonical.inputs)
    assert text is not None
    return Solution(text=text, piece=piece.fingerprint, places=1, gain=2.0, saved=0.1)


def replayed(model: onnx.ModelProto, found: Solution) -> onnx.ModelProto:
    program = understand(load(model))
    (fit,) = fits(cut_into_pieces(program), [found])
    placed = fit.placement(program)
    return ir.to_proto(rewritten(program, placed.new, placed.origins))


def outputs(model: onnx.ModelProto) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(0)
    feeds = {i.name: rng.standard_normal(i.shape).astype(np.float32) for i in session.get_inputs()}
    return [np.asarray(value) for value in session.run(None, feeds)]


def retrained() -> onnx.ModelProto:
    """The same model with other weights, and other names of its values."""
    model = normalized()
    for weight in model.graph.initializer:
        array = onnx.numpy_helper.to_array(weight)
        weight.CopyFrom(onnx.numpy_helper.from_array(np.asarray(array * 1.5, array.dtype), weight.name))
    return model


@pytest.mark.parametrize("model", [normalized(), retrained()], ids=["the same", "other weights"])
def test_what_was_found_is_put_in_its_place_again(model: onnx.ModelProto, found: Solution) -> None:
    again = replayed(model, found)
    assert "LRN" not in {node.op_type for node in again.graph.node}
    for ours, theirs in zip(outputs(again), outputs(model), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "other", [{"piece": "another"}, {"text": "(rule piece (given (?v0 1 2)) (from (relu ?v0)) (to ?v0))"}], ids=str
)
def test_a_piece_of_another_model_is_left(found: Solution, other: dict[str, str]) -> None:
    program = understand(load(normalized()))
    pieces = cut_into_pieces(program)
    assert fits(pieces, [found])
    assert fits(pieces, [found.model_copy(update=other)]) == []


def test_a_text_that_is_none_is_refused(found: Solution) -> None:
    program = understand(load(normalized()))
    pieces = cut_into_pieces(program)
    with pytest.raises(UsageError, match="cannot be read"):
        fits(pieces, [found.model_copy(update={"text": "(rule"})])


@pytest.mark.parametrize("is_here", [True, False])
def test_the_report_of_a_replay_tells_of_nothing_that_did_not_fit(found: Solution, is_here: bool) -> None:
    """As on a model of which a part was left out, and whose values are called otherwise."""
    program = understand(load(normalized()))
    (fit,) = fits(cut_into_pieces(program), [found])
    (*others, told) = program.values if is_here else fit.piece.names
    assert others or not is_here
    value = told if is_here else "elsewhere"
    facts = {"known": "definition", "by": (), "before": "(lrn 5 ?x)", "after": "?x", "value": value}
    here = Rewritten(name="here", times=6, piece=found.piece, **facts)
    twice = found.model_copy(update={"places": 3})
    other = found.model_copy(update={"piece": "another"})
    earlier = Report.model_construct(
        rewrites=(here, here.model_copy(update={"name": "there", "piece": "another"})), solutions=(twice, other)
    )
    again = report_again(Report.model_construct(), earlier, [fit], program)
    assert [(s.piece, s.places) for s in again.solutions] == [(found.piece, 1)]
    assert [(r.name, r.times, r.value) for r in again.rewrites] == [("here", 2, told)]


def test_what_is_infinite_in_a_report_reads_back() -> None:
    """As the error of integers that are not equal."""
    error = OutputError(name="y", error=math.inf, bound=0.0, original_error=None, optimized_error=None)
    assert OutputError.model_validate_json(error.model_dump_json()) == error


def test_terms_of_very_many_numbers_have_no_text() -> None:
    x = variable("x", (5, 3), "float32")
    few, many = (Take(0, tuple(range(5)) * count)(x) for count in (4, MOST_NUMBERS // 5 + 1))
    assert solution_text((few,), (few,), (x,)) is not None
    assert solution_text((many,), (many,), (x,)) is None
