"""What exporters write out and terms leave out is a gain by itself, where the whole model is measured to be faster."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import superopt
from superopt.api import Options
from superopt.demands import assuming
from superopt.dim import symbol
from superopt.errors import OutOfTime
from superopt.onnx_io import load, understand
from superopt.operators.layout import Reshape
from superopt.operators.pointwise import Add
from superopt.search.accepting import anew
from superopt.search.accepting.surest import without_vain
from superopt.search.cutting.pieces import cut_into_pieces
from superopt.search.paired import Paired, Timed
from superopt.search.solving.nodes import written_in_fewer, written_otherwise
from superopt.search.strategies.found import Found, Outcome, Solved
from superopt.term import Graph, variable, variables
from tests.onnx_io.networks import run

SHAPE = (16, 128, 64)


def written_out(explicit: bool = True) -> onnx.ModelProto:
    """Rows less their means, three times: what is taken away is repeated by a node of its own, if `explicit`."""
    nodes, last = [], "x"
    for i in range(3):
        nodes.append(helper.make_node("ReduceMean", [last], [f"m{i}"], axes=[-1], keepdims=1))
        nodes += [helper.make_node("Expand", [f"m{i}", "to"], [f"e{i}"])] if explicit else []
        nodes.append(helper.make_node("Sub", [last, f"e{i}" if explicit else f"m{i}"], [f"d{i}"]))
        nodes.append(helper.make_node("Tanh", [f"d{i}"], [last := f"t{i}"]))
    value = [helper.make_tensor_value_info(n, TensorProto.FLOAT, SHAPE) for n in ("x", last)]
    to = numpy_helper.from_array(np.array(SHAPE, np.int64), "to")
    graph = helper.make_graph(nodes, "rows", value[:1], value[1:], [to] if explicit else [])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture
def nothing_else(tmp_path: Path) -> Options:
    """No rules and no definitions: what is gained is gained by writing what was read."""
    return Options(time=20, rules=(), definitions=False, timings=tmp_path / "table")


def operators(model: onnx.ModelProto) -> set[str]:
    return {node.op_type for node in model.graph.node}


def test_repetitions_that_an_operator_does_by_itself_are_left_out(nothing_else: Options) -> None:
    given = written_out()
    result = superopt.optimize(given, nothing_else)
    assert result.report.outcome == "faster"
    assert {(r.name, r.known) for r in result.report.rewrites} == {("written anew", "definition")}
    assert all(s.gain > 1.0 for s in result.report.solutions)
    assert "Expand" in operators(given)
    assert "Expand" not in operators(result.proto())
    x = np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32)
    np.testing.assert_allclose(run(result.proto(), {"x": x})[0], run(given, {"x": x})[0], rtol=1e-5, atol=1e-6)


def test_what_is_predicted_is_what_pieces_were_measured_to_gain(nothing_else: Options) -> None:
    report = superopt.optimize(written_out(), nothing_else).report
    (solution,) = report.solutions
    assert report.predicted is not None
    assert report.predicted.original / report.predicted.optimized == pytest.approx(solution.gain)


def test_what_was_written_anew_is_remembered_and_replayed(nothing_else: Options) -> None:
    first, second = (superopt.optimize(written_out(), nothing_else).report for _ in range(2))
    assert second.outcome == "faster"
    assert second.searched.remembered == 1
    assert [s.text for s in second.solutions] == [s.text for s in first.solutions]
    again = superopt.api.replay(first, written_out(), nothing_else)
    assert again.report.outcome == "faster"
    assert "Expand" not in operators(again.proto())


def test_in_a_model_that_has_those_nodes_already_what_is_remembered_gains_nothing(nothing_else: Options) -> None:
    first, second = (superopt.optimize(written_out(e), nothing_else).report for e in (True, False))
    assert (first.outcome, second.outcome) == ("faster", "original")
    assert second.searched.remembered == 1
    assert second.reason == "no rewrite makes a piece of it faster"


def test_a_model_whose_nodes_are_those_that_it_would_be_written_in_is_not_measured_for_it(
    nothing_else: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(anew, "compare", _never)
    assert superopt.optimize(written_out(explicit=False), nothing_else).report.outcome == "original"


def _never(*_: object, **__: object) -> None:
    raise AssertionError("measured")


@pytest.mark.parametrize("ratio", [0.9, 1.004])
def test_what_is_no_faster_is_not_written_anew(
    nothing_else: Options, ratio: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And it is not measured again where the same is asked."""
    alone = Timed(0.01, 0.01, 0.01, 6, 60)
    found = Paired(alone, alone, ratio, ratio - 0.05, ratio + 0.05, 6, 60, (ratio,) * 6)
    for compare in (lambda *_, **__: found, _never):
        monkeypatch.setattr(anew, "compare", compare)
        report = superopt.optimize(written_out(), nothing_else).report
        assert (report.outcome, report.reason) == ("original", "no rewrite makes a piece of it faster")


def test_where_no_time_is_left_to_measure_it_it_is_not_written_anew(
    nothing_else: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(*_: object, **__: object) -> None:
        raise OutOfTime("measuring takes about 9 s")

    monkeypatch.setattr(anew, "compare", late)
    assert superopt.optimize(written_out(), nothing_else).report.outcome == "original"


@pytest.mark.parametrize(("share", "measured"), [(0.0099, False), (0.0101, True)])
def test_what_takes_less_than_a_gain_and_as_many_nodes_is_not_measured(
    nothing_else: Options, monkeypatch: pytest.MonkeyPatch, share: float, measured: bool
) -> None:
    asked: list[object] = []

    def compare(*models: object, **_: object) -> None:
        asked.append(models)
        raise OutOfTime("measuring takes about 9 s")

    monkeypatch.setattr(anew, "written_in_fewer", lambda program, places: False)
    monkeypatch.setattr(anew, "taken_as_they_stand", lambda solved: 1e-3 * (1.0 if isinstance(solved, list) else share))
    monkeypatch.setattr(anew, "compare", compare)
    assert superopt.optimize(written_out(), nothing_else).report.outcome == "original"
    assert bool(asked) == measured


def test_what_cannot_be_measured_in_its_share_of_the_time_is_not_written(
    nothing_else: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(anew, "taken_as_they_stand", lambda solved: nothing_else.time)
    monkeypatch.setattr(anew, "written", _never)
    assert superopt.optimize(written_out(), nothing_else).report.outcome == "original"


@pytest.mark.parametrize("explicit", [True, False])
def test_a_repetition_that_is_left_out_is_one_node_less(explicit: bool) -> None:
    program = understand(load(written_out(explicit)))
    assert written_in_fewer(program, cut_into_pieces(program)) == explicit


def test_reshapes_by_other_names_are_no_other_nodes() -> None:
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Flatten", ["r"], ["y"])]
    value = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", [2, 3, 4]), ("y", [2, 12]))]
    model = helper.make_model(
        helper.make_graph(nodes, "flat", value[:1], value[1:]), opset_imports=[helper.make_opsetid("", 17)]
    )
    for given, expected in ((model, [False]), (written_out(), [True]), (written_out(explicit=False), [False])):
        program = understand(load(given))
        assert written_otherwise(program, cut_into_pieces(program)) == expected


def test_a_piece_with_constants_as_large_as_a_symbol_stays_as_it_is() -> None:
    """A detector of torchvision has some; they cannot be drawn."""
    n = symbol("n")
    x, filled = variable("x", (n, 3)), variable("c", (n, 3), constant=True)
    program = understand(load(written_out()))
    (piece,) = cut_into_pieces(program)
    with assuming():
        made = Add()(x, Reshape((n, 3))(variable("c", (n, 1, 3), constant=True)))
    for term in (Add()(x, filled), made):
        assert written_otherwise(program, [replace(piece, graph=Graph(tuple(variables(term)), (term,)))]) == [False]


GAINS: dict[str, tuple[list[float], list[int] | None]] = {
    "one that loses": ([1.03, 0.98, 1.01], [0, 2]),
    "two of which one gains enough": ([0.99, 1.02], [1, 2]),
    "none that loses": ([1.02, 1.01], None),
    "none that gains": ([0.99, 1.0], None),
    "too little is left": ([1.004, 0.9, 1.003], None),
    "those that there was no time for stay": ([1.02, 0.99], [0, 2]),
}
"""How many times faster a model is with each of three pieces replaced alone, and which stay; None where no other is
tried.
"""


@pytest.mark.parametrize("name", GAINS)
def test_pieces_that_gain_nothing_in_the_whole_model_are_left_out(name: str) -> None:
    gains, staying = GAINS[name]
    (piece,) = cut_into_pieces(understand(load(written_out())))
    start = Found(piece.canonical, 1.0, ())
    cover = [Solved((piece,), Outcome(start), replace(start, cost=0.9), 1.1 - i / 100) for i in range(3)]
    left = without_vain(cover, cover, gains)
    assert (left and [i for i, s in enumerate(left) if s.gain > 1.0]) == staying
