"""What a search found is found again without one: for the same question, and no other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

import superopt
from superopt.api import Options
from superopt.cost.measured import MeasuredCost
from superopt.cost.table import Table
from superopt.cost.timing import Key
from superopt.errors import OutOfTime
from superopt.onnx_io import load, understand
from superopt.rules.format import parse_file
from superopt.search.cutting.pieces import cut_into_pieces
from superopt.search.rewriting.rewrites import ByRule, Unfold
from superopt.search.solving.cuttings import cuttings_of
from superopt.search.solving.remembered import Memory
from superopt.search.strategies.found import ALIKE, INTERRUPTED, OUT_OF_TIME, Applied, Found, Outcome, Solved
from superopt.term import Graph
from tests.conftest import RULES
from tests.models import model, normalized, weight

KEY = Key("a runtime", "1", "a device", 1)


@pytest.fixture
def memory(table: Table) -> Memory:
    return Memory(table, KEY, "a way", 60.0)


def solved(given: onnx.ModelProto | None = None, reason: str = "exhausted") -> Solved:
    """The normalization of a model, unfolded."""
    (piece,) = cut_into_pieces(understand(load(given or normalized())))
    graph = piece.canonical
    (norm,) = (t for t in graph.runs if t.operator.name == "lrn")
    (meaning,) = next(iter(Unfold("lrn").at((norm,))))
    (output,) = graph.outputs
    changed = Graph(graph.inputs, (output.operator(*(meaning if i is norm else i for i in output.inputs)),))
    start = Found(graph, 2.0, (), measured=True)
    winner = Found(changed, 1.0, (Applied("definition of lrn", "definition", (), norm, meaning),), measured=True)
    return Solved((piece,), Outcome(start, [winner], 7, reason), winner, 2.0)


def test_what_was_kept_is_recalled_whole(memory: Memory) -> None:
    kept = solved()
    memory.keep(kept)
    assert memory.recall(kept.places) == replace(kept, remembered=True)


def test_that_nothing_better_was_found_is_remembered_too(memory: Memory) -> None:
    kept = solved()
    start = kept.outcome.start
    kept = Solved(kept.places, Outcome(start, [start], 7), start, 1.0)
    memory.keep(kept)
    assert memory.recall(kept.places) == replace(kept, remembered=True)


def test_what_somebody_stopped_is_searched_again(memory: Memory) -> None:
    kept = solved(reason=INTERRUPTED)
    memory.keep(kept)
    assert memory.recall(kept.places) is None


@pytest.mark.parametrize("reason", [OUT_OF_TIME, ALIKE])
@pytest.mark.parametrize(("limit", "known"), [(30.0, True), (60.0, True), (61.0, False)])
def test_what_ran_out_of_time_or_followed_another_is_searched_again_where_more_is_allowed(
    memory: Memory, reason: str, limit: float, known: bool
) -> None:
    kept = solved(reason=reason)
    memory.keep(kept)
    assert (replace(memory, limit=limit).recall(kept.places) is not None) == known


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("waited", [True, False])
def test_that_nothing_was_found_in_time_is_remembered_unless_others_had_the_time(
    memory: Memory, waited: bool, whole: bool
) -> None:
    kept = solved()
    start = kept.outcome.start
    reason = OUT_OF_TIME if whole else "exhausted"
    kept = Solved(kept.places, Outcome(start, [start], 7, reason, untried=int(not whole)), start, 1.0)
    memory.keep(kept, waited)
    assert (memory.recall(kept.places) is None) == waited
    assert replace(memory, limit=2 * memory.limit).recall(kept.places) is None, "with more time more may be found"


@pytest.mark.parametrize(
    "other",
    [
        {"search_digest": "another"},
        {"key": replace(KEY, runtime="another")},
        {"key": replace(KEY, version="2")},
        {"key": replace(KEY, device="another")},
        {"key": replace(KEY, threads=2)},
    ],
    ids=str,
)
def test_another_question_has_no_answer_yet(memory: Memory, other: dict[str, object]) -> None:
    kept = solved()
    memory.keep(kept)
    assert replace(memory, **other).recall(kept.places) is None  # type: ignore[arg-type]


def test_another_piece_has_no_answer_yet(memory: Memory) -> None:
    memory.keep(solved())
    assert memory.recall(solved(normalized(size=30)).places) is None


@pytest.mark.parametrize("damage", ["", "{}", "[1]", "(rule"])
def test_an_entry_that_cannot_be_read_is_none(memory: Memory, damage: str) -> None:
    kept = solved()
    memory.keep(kept)
    memory.table._connection.execute("UPDATE answers SET answer = ?", (damage,))
    assert memory.recall(kept.places) is None


def test_an_entry_whose_text_is_about_another_piece_is_none(memory: Memory) -> None:
    kept, other = solved(), solved(normalized(size=30))
    memory.keep(other)
    memory.table._connection.execute("UPDATE answers SET asked = ?", (memory._asked(kept.places[0]),))
    assert memory.recall(kept.places) is None


def test_what_is_remembered_of_a_joined_piece_is_not_taken_for_a_piece(memory: Memory) -> None:
    """It was not searched as long."""
    kept = solved()
    memory.of_joined.keep(kept)
    assert memory.recall(kept.places) is None
    assert memory.of_joined.recall(kept.places) == replace(kept, remembered=True)


def test_the_second_run_searches_nothing_and_finds_the_same(options: Options, tmp_path: Path) -> None:
    options = replace(options, timings=tmp_path / "t.sqlite")
    first, second = (superopt.optimize(normalized(), options).report for _ in range(2))
    assert first.searched.remembered == 0
    assert second.searched.remembered == second.searched.distinct > 0
    assert second.searched.graphs == first.searched.graphs
    assert second.solutions == first.solutions
    assert second.rewrites == first.rewrites


def test_a_step_of_several_outputs_is_recalled_whole(memory: Memory) -> None:
    ends = [("x", TensorProto.FLOAT, (2, 3)), ("p", TensorProto.FLOAT, (2, 4)), ("q", TensorProto.FLOAT, (2, 5))]
    nodes = [helper.make_node("MatMul", ["x", w], [y]) for w, y in ("ap", "bq")]
    given = model(nodes, ends[:1], ends[1:], {"a": weight(3, 4), "b": weight(3, 5)})
    (piece,) = cut_into_pieces(understand(load(given)))
    graph = piece.canonical
    (rule,) = [r for r in parse_file(RULES).rules if r.name == "share-left"]
    (together,) = ByRule(rule).at(graph.outputs)
    steps = tuple(Applied(rule.name, "proved", ("a-law",), b, a) for b, a in zip(graph.outputs, together, strict=True))
    start = Found(graph, 2.0, (), measured=True)
    winner = Found(Graph(graph.inputs, together), 1.0, steps, measured=True)
    kept = Solved((piece,), Outcome(start, [winner], 7), winner, 2.0)
    memory.keep(kept)
    assert memory.recall(kept.places) == replace(kept, remembered=True)


def test_what_is_remembered_wrongly_is_forgotten_and_searched_anew(options: Options, tmp_path: Path) -> None:
    options = replace(options, timings=tmp_path / "t.sqlite")
    first = superopt.optimize(normalized(), options).report
    with Table(options.timings) as table:
        table._connection.execute("UPDATE answers SET answer = replace(answer, '(sqrt ', '(relu ')")
    again = superopt.optimize(normalized(), options).report
    assert again.outcome == "faster"
    assert (first.searched.remembered, again.searched.remembered) == (0, 0)
    assert superopt.optimize(normalized(), options).report.searched.remembered == 1


def test_what_was_found_since_is_forgotten_too_so_that_no_third_search_recalls_it(memory: Memory) -> None:
    """A candidate that differs is searched once more: two halves that recall each other would go on for ever."""
    program = understand(load(normalized()))
    cut = cuttings_of(program, memory)
    memory.keep(solved())
    assert cuttings_of(program, memory).all_known
    assert not cut.forget(memory), "nothing was known when it was cut"
    assert not cuttings_of(program, memory).known


def test_a_gain_that_no_time_was_left_to_time_is_taken_and_not_kept(
    options: Options, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def whole(*_: object) -> tuple[float, float]:
        raise OutOfTime("another process measures")

    options = replace(options, timings=tmp_path / "t.sqlite")
    with monkeypatch.context() as patch:
        patch.setattr("superopt.cost.measured.MeasuredCost.whole", whole)
        assert superopt.optimize(normalized(), options).report.outcome == "faster"
    report = superopt.optimize(normalized(), options).report
    assert (report.outcome, report.searched.remembered) == ("faster", 0)


def test_a_search_whose_graphs_could_not_be_timed_while_others_measured_is_not_kept(
    options: Options, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def whole(cost: MeasuredCost, *_: object) -> tuple[float, float]:
        cost.bench.waited_s += 60.0
        raise OutOfTime("another process measures")

    options = replace(options, timings=tmp_path / "t.sqlite")
    with monkeypatch.context() as patch:
        patch.setattr("superopt.cost.measured.MeasuredCost.whole", whole)
        superopt.optimize(normalized(), options)
    report = superopt.optimize(normalized(), options).report
    assert (report.outcome, report.searched.remembered) == ("faster", 0)
