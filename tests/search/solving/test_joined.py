"""Joined pieces lie over all cuts, begin with what was found for their parts, and find what spans a cut."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import NodeProto, TensorProto, helper

import superopt
from superopt.api import Options
from superopt.arithmetic.floats import FLOAT
from superopt.cost.analytic import AnalyticCost
from superopt.cost.bench import Bench
from superopt.cost.measured import MeasuredCost
from superopt.cost.ort import OnnxRuntime
from superopt.cost.table import Table
from superopt.evaluate import evaluate
from superopt.onnx_io import Program, load, understand
from superopt.rules.format import parse_file, print_file
from superopt.search.cutting.pieces import LARGEST_JOINED, Piece, cut_into_pieces, distinct, joined_pieces
from superopt.search.objectives.latency import Latency
from superopt.search.replay import fits
from superopt.search.report import Solution
from superopt.search.rewriting.matching import Matching
from superopt.search.rewriting.rewrites import ByRule
from superopt.search.solving.across import solve_joined
from superopt.search.solving.joined import Begun, begun_of, solved_as_pieces
from superopt.search.solving.schedule import scheduled
from superopt.search.solving.searching import Search
from superopt.search.solving.solution import solution_text
from superopt.search.strategies.backtrack import backtrack
from superopt.search.strategies.by_name import STRATEGIES
from superopt.search.strategies.found import (
    Found,
    Limits,
    Outcome,
    Solved,
)
from superopt.term import Graph
from superopt.verify.trusted import sealed
from tests.models import assert_same, model, weight
from tests.onnx_io.networks import LIGHT, name

RULES = """
(rule associate
  (given (?x m k) (?a k n) (?b n r))
  (from (matmul (matmul ?x ?a) ?b))
  (to (matmul ?x (matmul ?a ?b))))
(rule relu-relu (given (?x n c)) (from (relu (relu ?x))) (to (relu ?x)))
"""
REWRITES = [ByRule(rule) for rule in parse_file(RULES).rules]


def chain(bends: str = "Tanh", seed: int = 0) -> onnx.ModelProto:
    """Two products without anything between them, the one the last of a piece, and the other the first of the next."""
    before, after = ([bends] * 5 for _ in range(2))
    ops = [*before, "MatMul", "MatMul", *after]
    weights = {"v5": weight(256, 1024, seed=seed), "v6": weight(1024, 256, seed=seed + 1)}
    nodes = [
        helper.make_node(op, [f"h{i}", *([f"v{i}"] if op == "MatMul" else [])], [f"h{i + 1}"])
        for i, op in enumerate(ops)
    ]
    ends = [(n, TensorProto.FLOAT, [64, 256]) for n in ("h0", f"h{len(ops)}")]
    return model(nodes, ends[:1], ends[1:], weights)


def cut(program: Program) -> tuple[list[Piece], list[Piece]]:
    pieces = cut_into_pieces(program)
    return pieces, joined_pieces(program, pieces)


def as_it_was(places: list[Piece], gain: float = 1.0) -> Solved:
    start = Found(places[0].canonical, 1.0, (), measured=True)
    return Solved(tuple(places), Outcome(start, [start]), start, gain)


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Nodes that read what any before them gave, an opaque one among them now and then."""
    nodes: list[NodeProto] = []
    for i in range(draw(st.integers(1, 70))):
        op = draw(st.sampled_from(["Tanh", "Relu", "Add", "MatMul", "Mul", "Asinh" if i % 9 == 0 else "Sqrt"]))
        count = 2 if op in ("Add", "MatMul", "Mul") else 1
        read = [f"h{i - draw(st.integers(0, min(i, 3)))}" for _ in range(count)]
        nodes.append(helper.make_node(op, read, [f"h{i + 1}"]))
    ends = [(n, TensorProto.FLOAT, [4, 4]) for n in ("h0", nodes[-1].output[0])]
    return understand(load(model(nodes, ends[:1], ends[1:])))


def assert_each_cut_is_in_a_joined_piece(program: Program) -> int:
    pieces, joined = cut(program)
    cuts = [b.steps.start for a, b in pairwise(pieces) if a.steps.stop == b.steps.start]
    for at in cuts:
        assert any(j.steps.start < at < j.steps.stop for j in joined), at
    ends = {(e, True) for p in pieces for e in [p.steps.start]} | {(p.steps.stop, False) for p in pieces}
    assert {(e, True) for j in joined for e in [j.steps.start]} | {(j.steps.stop, False) for j in joined} <= ends
    assert all(len(j.steps) <= LARGEST_JOINED for j in joined)
    return len(cuts)


@settings(max_examples=60, deadline=None)
@given(programs())
def test_each_cut_is_within_a_joined_piece(program: Program) -> None:
    assert_each_cut_is_in_a_joined_piece(program)


@pytest.mark.parametrize("network", LIGHT, ids=name)
def test_each_cut_of_a_network_is_within_a_joined_piece(network: Path) -> None:
    assert assert_each_cut_is_in_a_joined_piece(understand(load(network))) > 1


@settings(max_examples=60, deadline=None)
@given(programs())
def test_no_path_leaves_a_joined_piece_and_comes_back(program: Program) -> None:
    place = {n: i for i, step in enumerate(program.steps) for n in step.outputs}
    for piece in cut(program)[1]:
        assert all(place.get(v.label, -1) < piece.steps.start for v in piece.graph.inputs)
        assert {place[n] for n in piece.origins.values()} <= set(piece.steps)


def test_a_joined_piece_is_not_joined_over_an_opaque_node() -> None:
    nodes = [helper.make_node("Asinh" if i == 6 else "Tanh", [f"h{i}"], [f"h{i + 1}"]) for i in range(13)]
    ends = [(n, TensorProto.FLOAT, [4, 4]) for n in ("h0", "h13")]
    pieces, joined = cut(understand(load(model(nodes, ends[:1], ends[1:]))))
    assert (len(pieces), joined) == (2, [])


@settings(max_examples=30, deadline=None)
@given(programs())
def test_without_gains_a_joined_piece_begins_as_it_is(program: Program) -> None:
    pieces, joined = cut(program)
    groups = distinct(joined)
    found = begun_of(groups, [as_it_was(places) for places in distinct(pieces).values()], program.values)
    assert set(found) == set(groups)
    for key, begun in found.items():
        assert begun.graph.outputs == groups[key][0].canonical.outputs


def test_a_joined_piece_whose_parts_were_not_all_solved_is_not_begun() -> None:
    program = understand(load(chain()))
    pieces, joined = cut(program)
    assert begun_of(distinct(joined), [as_it_was([pieces[0]])], program.values) == {}


def test_a_joined_piece_like_one_that_was_solved_is_known() -> None:
    (_, joined), (pieces, _) = (cut(understand(load(chain(bends)))) for bends in ("Tanh", "Relu"))
    like, others = (replace(as_it_was([p]), gain=2.0) for p in (joined[0], pieces[0]))
    (known,) = solved_as_pieces(distinct(joined), distinct([joined[0], pieces[0]]), [others, like]).values()
    assert (known.places, known.gain, known.outcome.seen) == (tuple(joined), 2.0, 0)
    assert solved_as_pieces(distinct(joined), distinct(pieces), [others]) == {}


@pytest.fixture
def bent() -> tuple[Piece, Begun]:
    """A chain with relus, which its parts were solved to have one of."""
    program = understand(load(chain("Relu")))
    pieces, (joined,) = cut(program)
    solved = []
    for piece in pieces:
        outcome = backtrack(piece.canonical, Matching(REWRITES), AnalyticCost(), Limits())
        solved.append(Solved((piece,), outcome, outcome.best[0], 2.0))
    (begun,) = begun_of(distinct([joined]), solved, program.values).values()
    return joined, begun


def names(graph: Graph) -> Counter[str]:
    return Counter(t.operator.name for t in graph.runs)


def test_a_joined_piece_begins_with_what_its_parts_became(bent: tuple[Piece, Begun]) -> None:
    piece, begun = bent
    assert names(piece.canonical) == {"relu": 10, "matmul": 2}
    assert names(begun.graph) == {"relu": 2, "matmul": 2}
    assert [step.name for step in begun.steps] == ["relu-relu"] * 8
    rng = np.random.default_rng(0)
    given = {v: rng.standard_normal(v.shape) for v in begun.graph.inputs}
    ours, theirs = (evaluate(g.outputs[0], FLOAT, given) for g in (begun.graph, piece.canonical))
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


def test_what_a_part_allows_was_tried_and_what_spans_the_cut_was_not() -> None:
    program = understand(load(chain("Relu")))
    pieces, joined = cut(program)
    parts = [as_it_was([p]) for p in pieces]
    (begun,) = begun_of(distinct(joined), parts, program.values).values()
    for rewrites, steps in ((REWRITES[1:], set[str]()), (REWRITES[:1], {"associate"})):
        tried = list(begun.tried(Matching(rewrites)))
        outcome = backtrack(begun.graph, Matching(rewrites), AnalyticCost(), Limits(patience=6), tried)
        assert {s.name for f in outcome.best for s in f.steps} == steps
        assert (outcome.seen == 1) == (not steps)
        assert bool(tried) == (not steps)


@pytest.mark.parametrize("seed", range(4))
def test_what_is_chosen_covers_each_step_once_and_saves_no_less(seed: int) -> None:
    pieces, joined = cut(understand(load(next(n for n in LIGHT if "densenet" in n.name))))
    rng = np.random.default_rng(seed)
    solved, overlapping = (
        [as_it_was(places, max(1.0, float(rng.uniform(0.5, 2.0)))) for places in distinct(cutting).values()]
        for cutting in (pieces, joined)
    )
    cover = scheduled(solved, overlapping)
    steps = sorted(number for s in cover for place in s.places for number in place.steps)
    assert steps == sorted(number for piece in pieces for number in piece.steps)

    def saved(some: list[Solved]) -> float:
        return sum(s.saved * len(s.places) for s in some)

    assert saved(cover) > saved(solved)
    assert all(s.gain > 1.0 for s in cover if s.outcome.start in [o.outcome.start for o in overlapping])


@pytest.fixture(scope="module")
def across(timings: Path, tmp_path_factory: pytest.TempPathFactory) -> Options:
    """A table and rules of its own; the lock for measuring is that of all tests."""
    folder = tmp_path_factory.mktemp("across")
    (folder / "associate.rules").write_text(print_file(sealed(parse_file(RULES).rules, {})), encoding="utf-8")
    return Options(time=20, timings=timings, rules=(folder / "associate.rules",), definitions=False)


def test_what_spans_a_cut_is_found_remembered_and_replayed(across: Options) -> None:
    """On the runtime; the replay with other weights."""
    first, second = (superopt.optimize(chain(), across) for _ in range(2))
    report = first.report
    assert report.outcome == "faster"
    assert (report.searched.pieces, report.searched.joined) == (2, 1)
    assert [(r.name, r.times) for r in report.rewrites] == [("associate", 1)]
    assert [s.places for s in report.solutions] == [1]
    assert second.report.searched.remembered == 3
    assert second.report.solutions == report.solutions
    retrained = chain(seed=7)
    again = superopt.api.replay(report, retrained, across)
    assert again.report.outcome == "faster"
    assert again.proto().graph.node == first.proto().graph.node
    assert_same(again.proto(), retrained)


@pytest.mark.parametrize("objective", ["size", "memory"])
def test_bytes_are_saved_across_a_cut_as_seconds_are(across: Options, objective: str) -> None:
    report = superopt.optimize(chain(), replace(across, objective=objective)).report
    assert report.outcome == "smaller"
    assert [(s.places, s.saved > 100_000) for s in report.solutions] == [(1, True)]


@pytest.mark.parametrize(("saved", "taken"), [(1.0, 2), (3.0, 1)])
def test_of_solutions_that_overlap_a_replay_takes_those_that_save_most(saved: float, taken: int) -> None:
    """The parts of the chain save 1 each."""
    program = understand(load(chain("Relu")))
    pieces, joined = cut(program)
    solutions = []
    for piece in (*pieces, *joined):
        outcome = backtrack(piece.canonical, Matching(REWRITES), AnalyticCost(), Limits())
        text = solution_text(piece.canonical.outputs, outcome.best[0].graph.outputs, piece.canonical.inputs)
        saves = saved if piece in joined else 1.0
        solutions.append(Solution(text=text, piece=piece.fingerprint, places=1, gain=2.0, saved=saves))
    found = fits([*pieces, *joined], solutions)
    assert [set(fit.placement(program).new) for fit in found] == [
        set(p.names) for p in (joined if taken == 1 else pieces)
    ]


def test_who_stops_the_search_of_joined_pieces_gets_those_before(table: Table) -> None:
    asked: list[Graph] = []

    def stopping(graph: Graph, *_: object) -> Outcome:
        asked.append(graph)
        if len(asked) == 2:
            raise KeyboardInterrupt
        start = Found(graph, 1.0, (), measured=True)
        return Outcome(start, [start])

    program = understand(load(next(n for n in LIGHT if "squeezenet" in n.name)))
    pieces, joined = cut(program)
    begun = begun_of(distinct(joined), [as_it_was(places) for places in distinct(pieces).values()], program.values)
    search = Search(Matching([]), Latency(MeasuredCost(Bench(OnnxRuntime(1), table, 17))), stopping, 1.15)
    found = solve_joined(distinct(joined), {}, begun, search, math.inf, lambda *_: None)
    assert (len(found), len(asked), search.stopped) == (1, 2, True)
    assert len(begun) > 2


def test_a_search_of_joined_pieces_that_is_stopped_and_has_nothing_ends_at_once(
    across: Options, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopping(*given: object, **_: object) -> Outcome:
        if given[-1] is not None:
            raise KeyboardInterrupt
        return backtrack(*given)  # type: ignore[arg-type]

    monkeypatch.setitem(STRATEGIES, "backtrack", stopping)
    with pytest.raises(KeyboardInterrupt):
        superopt.optimize(chain(), replace(across, timings=tmp_path / "t.sqlite"))


def test_without_time_for_joined_pieces_that_is_said(
    across: Options, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("superopt.search.piecewise.JOINED_LEAST", 0.0)
    monkeypatch.setattr("superopt.search.piecewise.JOINED_SHARE", 0.0)
    report = superopt.optimize(chain(), replace(across, timings=tmp_path / "t.sqlite")).report
    assert (report.outcome, report.searched.joined) == ("original", 1)
    assert report.searched.stopped[-1] == "out of time"
