"""Every strategy: deterministic, within alpha, limits and deadline, and right about what it found."""

from __future__ import annotations

import itertools
import math
import time
from dataclasses import dataclass, field

import pytest

from superopt.cost.analytic import AnalyticCost
from superopt.cost.kernels import Kernel
from superopt.errors import OutOfTime, ShapeError
from superopt.onnx_io import load, understand
from superopt.operators.differences import Neg
from superopt.operators.pointwise import Add, Relu, Sqrt
from superopt.rules.format import load_rules, parse_file
from superopt.search.cutting.pieces import cut_into_pieces
from superopt.search.rewriting.matching import Matching
from superopt.search.rewriting.rewrites import ByRule, Unfold, rewrites_of
from superopt.search.strategies.by_name import STRATEGIES
from superopt.search.strategies.found import ENCOURAGED, Found, Limits, Outcome, Strategy, keep, lightest
from superopt.shipped import shipped_rules
from superopt.term import Graph, Term, subterms, variable
from tests.models import normalized

RELU = "(rule relu-relu (given (?x n c)) (from (relu (relu ?x))) (to (relu ?x)))"
SWAP = "(rule swap (given (?x n c) (?y n c)) (from (add (relu ?x) ?y)) (to (add ?y (relu ?x))))"
LONGER = [
    "(rule wider (given (?x n c)) (from (relu ?x)) (to (sqrt (sqrt ?x))))",
    "(rule wider (given (?x n c)) (from (sqrt ?x)) (to (relu (relu ?x))))",
]
CHEAPER = "(rule cheaper (given (?x n c)) (from (relu ?x)) (to (abs ?x)))"
X = variable("x", (64, 64), "float32")


@pytest.fixture(params=STRATEGIES.values(), ids=STRATEGIES)
def search(request: pytest.FixtureRequest) -> Strategy:
    strategy: Strategy = request.param
    return strategy


def rewrites(*texts: str) -> Matching:
    return Matching([ByRule(r) for text in texts for r in parse_file(text).rules])


def relus(count: int) -> Graph:
    term: Term = X
    for _ in range(count):
        term = Relu()(term)
    return Graph((X,), (term,))


@dataclass
class Priced:
    """A cost that a test makes up: seconds for each operator that runs."""

    prices: dict[str, float] = field(default_factory=dict)
    fails: dict[int, BaseException] = field(default_factory=dict)
    """What to raise for graphs of so many relus."""

    def cost(self, graph: Graph, most: float = math.inf) -> float:
        names = [t.operator.name for t in subterms(*graph.outputs) if not t.is_variable]
        if names.count("relu") in self.fails:
            raise self.fails[names.count("relu")]
        return math.fsum(self.prices.get(n, 1.0) for n in names)

    def breakdown(self, graph: Graph) -> list[tuple[Kernel, float]]:
        return [
            (Kernel(t, Graph((), (t,)), t.inputs, (False,) * len(t.inputs)), 0.0)
            for t in subterms(*graph.outputs)
            if not t.is_variable
        ]

    def estimate(self, graph: Graph) -> float:
        names = [t.operator.name for t in subterms(*graph.outputs) if not t.is_variable]
        return math.fsum(self.prices.get(n, 1.0) for n in names)


def told(outcome: Outcome) -> list[tuple[str, float, list[str]]]:
    return [(str(f.graph.outputs), f.cost, [s.name for s in f.steps]) for f in outcome.best]


def cheapest(outcome: Outcome) -> Found:
    return min(outcome.best, key=lambda f: f.cost)


def test_a_chain_is_shortened_step_by_step(search: Strategy) -> None:
    outcome = search(relus(4), rewrites(RELU), Priced(), Limits())
    assert cheapest(outcome).graph.outputs == relus(1).outputs
    assert [s.name for s in cheapest(outcome).steps] == ["relu-relu"] * 3
    assert (outcome.start.cost, cheapest(outcome).cost, outcome.reason) == (4.0, 1.0, "exhausted")


def test_the_same_search_twice_finds_the_same(search: Strategy) -> None:
    (piece,) = cut_into_pieces(understand(load(normalized())))
    rules = [rule for path in shipped_rules() for rule in load_rules(path).rules]
    first, second = (
        search(piece.canonical, Matching(rewrites_of(rules, ["lrn"])), AnalyticCost(), Limits(expanded=8, alpha=20.0))
        for _ in range(2)
    )
    assert first.seen > 3
    assert (told(first), first.seen, first.reason) == (told(second), second.seen, second.reason)


def test_beside_the_cheapest_the_next_that_moves_less_is_kept() -> None:
    """Where the two cheapest move three images each, and two others one, the cheaper of these."""
    moving = {n: Priced({"relu": price}) for n, price in ((3, 0.1), (4, 0.1), (1, 0.5), (2, 0.5))}
    start = Found(relus(6), 6.0, ())
    found = {n: Found(relus(n), price.cost(relus(n)), ()) for n, price in moving.items()}
    for order in itertools.permutations(found.values()):
        outcome = Outcome(start, [start])
        for each in order:
            keep(outcome, each, 2, Priced())
        assert outcome.best == [found[3], found[4], found[1]]


def test_of_what_runs_the_operators_of_the_start_the_lightest_is_kept() -> None:
    """However little its sum promises: two that run others are cheaper, and so is one of more work."""
    start = Found(relus(4), 4.0, ())
    others = [Found(Graph((X,), (made,)), seconds, ()) for made, seconds in ((Sqrt()(X), 1.0), (Neg()(X), 2.0))]
    heavy, light = Found(relus(3), 3.9, ()), Found(relus(2), 4.1, ())
    for order in itertools.permutations((*others, heavy, light)):
        outcome = Outcome(start, [start])
        for each in order:
            keep(outcome, each, 2, Priced())
        assert outcome.best == [*others, light]
        assert lightest(outcome.best, start, Priced()) == light
    assert lightest([start, *others], start, Priced()) is None


def test_a_graph_is_never_seen_twice(search: Strategy) -> None:
    """Forward and back between two orders would never end."""
    y = variable("y", (64, 64), "float32")
    back = "(rule back (given (?x n c) (?y n c)) (from (add ?y (relu ?x))) (to (add (relu ?x) ?y)))"
    start = Graph((X, y), (Add()(Relu()(X), Relu()(y)),))
    outcome = search(start, rewrites(SWAP, back), Priced(), Limits())
    assert outcome.reason == "exhausted"
    assert outcome.seen <= 4


@pytest.mark.parametrize(("alpha", "reached"), [(1.0, False), (1.2, False), (1.4, True)])
def test_a_costlier_graph_is_gone_on_from_only_within_alpha(search: Strategy, alpha: float, reached: bool) -> None:
    """A detour of one more operator, 4 over 3, leads on to a graph of 4, and that to one of cost 1."""
    ways = ("(relu (relu (relu ?x)))", "(sqrt (abs (sqrt (relu ?x))))", "(sqrt (neg (sqrt (relu ?x))))", "(sqrt ?x)")
    steps = [f"(rule r (given (?x n c)) (from {a}) (to {b}))" for a, b in itertools.pairwise(ways)]
    outcome = search(relus(3), rewrites(*steps), Priced(), Limits(alpha=alpha))
    assert (cheapest(outcome).cost == 1.0) is reached


def test_the_number_of_graphs_is_limited(search: Strategy) -> None:
    outcome = search(relus(1), rewrites(*LONGER), Priced({"relu": 0.0, "sqrt": 0.0}), Limits(expanded=5))
    assert outcome.reason == "limit of graphs"
    assert 5 < outcome.seen < 100


@pytest.mark.parametrize(("best", "ends"), [(1.0, 5), (0.999, 5), (0.9, 5 * ENCOURAGED)], ids=["none", "noise", "some"])
def test_after_a_gain_more_graphs_in_vain_are_looked_at(best: float, ends: int) -> None:
    limits = Limits(patience=5)
    assert [vain for vain in range(40) if limits.enough(vain, best, start=1.0)] == list(range(ends, 40))


def test_a_search_past_its_deadline_ends_with_what_it_has(search: Strategy) -> None:
    outcome = search(relus(4), rewrites(RELU), Priced(), Limits(deadline=time.monotonic() - 1))
    assert (outcome.reason, outcome.best) == ("out of time", [outcome.start])


def test_time_that_runs_out_while_measuring_keeps_what_was_found(search: Strategy) -> None:
    outcome = search(relus(4), rewrites(CHEAPER), Priced({"abs": 0.5}, {2: OutOfTime("now")}), Limits())
    assert outcome.reason == "out of time"
    assert cheapest(outcome).cost == 3.5


def test_a_graph_that_cannot_be_costed_is_left_out(search: Strategy) -> None:
    uncosted = {count: ShapeError("not this one") for count in (0, 1, 2)}
    outcome = search(relus(4), rewrites(CHEAPER), Priced({"abs": 0.5}, uncosted), Limits())
    assert cheapest(outcome).cost == 3.5


def test_a_graph_of_infinite_cost_is_left_out(search: Strategy) -> None:
    dear = "(rule dear (given (?x n c)) (from (relu ?x)) (to (sqrt ?x)))"
    outcome = search(relus(1), rewrites(dear), Priced({"sqrt": math.inf}), Limits())
    assert outcome.best == [outcome.start]


def test_few_results_are_kept_and_the_cheapest_first(search: Strategy) -> None:
    outcome = search(relus(6), rewrites(RELU), Priced(), Limits(keep=2, alpha=10))
    assert [f.cost for f in outcome.best] == [1.0, 2.0]


def test_a_definition_is_a_step_with_its_own_kind(search: Strategy) -> None:
    (piece,) = cut_into_pieces(understand(load(normalized())))
    outcome = search(piece.canonical, Matching([Unfold("lrn")]), Priced({"lrn": 100.0}), Limits())
    (step,) = cheapest(outcome).steps
    assert (step.name, step.known, step.before.operator.name) == ("definition of lrn", "definition", "lrn")


def test_who_stops_a_search_gets_what_it_has_found(search: Strategy) -> None:
    start = relus(3)
    cost = Priced({"abs": 0.5}, fails={0: KeyboardInterrupt()})
    outcome = search(start, rewrites(CHEAPER), cost, Limits())
    assert outcome.reason == "interrupted"
    assert cheapest(outcome).cost < outcome.start.cost
