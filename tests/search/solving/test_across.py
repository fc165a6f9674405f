"""Which joined pieces are searched, of those that are alike."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace

import pytest

from superopt.cost.bench import Bench
from superopt.cost.measured import MeasuredCost
from superopt.cost.ort import OnnxRuntime
from superopt.cost.table import Table
from superopt.onnx_io import load, understand
from superopt.search.cutting.pieces import distinct
from superopt.search.objectives.latency import Latency
from superopt.search.rewriting.matching import Matching
from superopt.search.solving.across import ENOUGH_IN_VAIN, solve_joined
from superopt.search.solving.following import structure
from superopt.search.solving.joined import begun_of
from superopt.search.solving.searching import Search
from superopt.search.solving.solution import Terms
from superopt.search.strategies.found import ALIKE, EXHAUSTED, OUT_OF_TIME, VAIN, Found, Outcome, Solved
from superopt.term import Graph
from tests.onnx_io.networks import LIGHT
from tests.search.solving.test_joined import as_it_was, cut


class Kinds:
    """The joined pieces of a DenseNet, most of which are of one kind, and searches of them that end for a reason."""

    def __init__(self, table: Table, reason: str) -> None:
        program = understand(load(next(n for n in LIGHT if "densenet" in n.name)))
        pieces, joined = cut(program)
        self.groups, self.reason = distinct(joined), reason
        self.begun = begun_of(self.groups, [as_it_was(p) for p in distinct(pieces).values()], program.values)
        self.asked = Counter[Hashable]()
        self.search = Search(Matching([]), Latency(MeasuredCost(Bench(OnnxRuntime(1), table, 17))), self.end, 1.15)
        self.kinds = Counter(structure(one.piece.canonical.outputs) for one in self.begun.values())
        assert self.kinds.most_common(1)[0][1] > ENOUGH_IN_VAIN

    def end(self, graph: Graph, *_: object) -> Outcome:
        """A search that finds nothing."""
        self.asked[structure(graph.outputs)] += 1
        start = Found(graph, 1.0, (), measured=True)
        return Outcome(start, [start], 1, self.reason)

    def solve(self, known: Mapping[Terms, Solved] | None = None) -> list[Solved]:
        """What comes of all."""
        return solve_joined(self.groups, known or {}, self.begun, self.search, time.monotonic() + 1e3, lambda *_: None)

    def of_most(self, change: Callable[[Solved], Solved]) -> tuple[Hashable, dict[Terms, Solved]]:
        """The kind that most are of, and enough of it as they were known before, changed."""
        kind = self.kinds.most_common(1)[0][0]
        some = [k for k, one in self.begun.items() if structure(one.piece.canonical.outputs) == kind][:ENOUGH_IN_VAIN]
        return kind, {k: change(self.begun[k].unsearched(self.groups[k], sum, EXHAUSTED)) for k in some}


@pytest.mark.parametrize(("reason", "all_of_them"), [(EXHAUSTED, False), (VAIN, False), (OUT_OF_TIME, True)])
def test_of_alike_joined_pieces_three_are_searched_where_these_end_and_gain_nothing(
    table: Table, reason: str, all_of_them: bool
) -> None:
    of = Kinds(table, reason)
    found, asked, kinds = of.solve(), of.asked, of.kinds
    assert asked == kinds if all_of_them else all(asked[k] == min(n, ENOUGH_IN_VAIN) for k, n in kinds.items())
    assert Counter(s.outcome.reason for s in found) == Counter(
        {reason: asked.total(), ALIKE: len(of.begun) - asked.total()}
    )


@pytest.mark.parametrize(
    ("change", "searched"),
    [
        (lambda one: one, False),
        (lambda one: replace(one, gain=1.1), True),
        (lambda one: replace(one, outcome=replace(one.outcome, untried=1)), True),
    ],
    ids=["gained nothing", "gained", "could not be timed"],
)
def test_what_is_known_of_joined_pieces_tells_whether_others_that_are_alike_are_searched(
    table: Table, change: Callable[[Solved], Solved], searched: bool
) -> None:
    of = Kinds(table, EXHAUSTED)
    kind, known = of.of_most(change)
    of.solve(known)
    assert bool(of.asked[kind]) == searched
