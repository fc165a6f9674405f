"""What is found across many operators is looked for in joined pieces as they stand, too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from superopt.cost.bench import Bench
from superopt.cost.measured import MeasuredCost
from superopt.cost.ort import OnnxRuntime
from superopt.cost.table import Table
from superopt.onnx_io import load, understand
from superopt.operators.pointwise import Relu
from superopt.search.cutting.pieces import Piece, cut_into_pieces, distinct, joined_pieces
from superopt.search.objectives.latency import Latency
from superopt.search.rewriting.finders.dense import Densing
from superopt.search.rewriting.matching import Matching
from superopt.search.rewriting.rewrites import Less, Rewrite
from superopt.search.solving.joined import Begun, begun_of
from superopt.search.solving.searching import Search
from superopt.search.strategies.backtrack import backtrack
from superopt.term import Graph
from tests.search.solving.test_joined import REWRITES, as_it_was, chain


def begun(gain: float) -> tuple[Piece, Begun]:
    """Two products in pieces of their own, which gain so much each: behind the first of them stands something else in
    what was found for it.
    """
    program = understand(load(chain()))
    pieces = cut_into_pieces(program)
    (joined,) = joined_pieces(program, pieces)
    solved = [as_it_was([piece], gain) for piece in pieces]
    graph = solved[0].winner.graph
    hiding = Graph(graph.inputs, tuple(Relu()(output) for output in graph.outputs))
    solved[0] = replace(solved[0], winner=replace(solved[0].winner, graph=hiding))
    (found,) = begun_of(distinct([joined]), solved, program.values).values()
    return joined, found


def gained_by(table: Table, rewrites: Sequence[Rewrite], gain: float = 1.0) -> set[str]:
    """The steps by which the joined piece gains, where its parts gain so much."""
    piece, found = begun(gain)
    search = Search(Matching(rewrites), Latency(MeasuredCost(Bench(OnnxRuntime(1), table, 17))), backtrack, 1.15)
    return {step.name for step in search([piece], 60.0, found).winner.steps}


def test_what_spans_a_cut_is_found_where_what_was_found_for_a_part_hides_it(table: Table) -> None:
    assert gained_by(table, [Less(Densing), *REWRITES]) == {Densing.name}


def test_what_gains_less_than_the_parts_do_is_not_timed(table: Table) -> None:
    assert gained_by(table, [Less(Densing), *REWRITES], gain=1e6) == set()


def test_what_is_found_in_a_part_alone_spans_nothing() -> None:
    _, found = begun(1.0)
    assert found.spans(Matching([Less(Densing)]))
    assert not found.spans(Matching(REWRITES[1:]))
