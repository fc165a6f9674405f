"""What whole times say of graphs that were not timed, by the kernels that they share."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest

from superopt.cost.kernels import Kernel, cut
from superopt.operators.declared import Declared
from superopt.operators.differences import Neg
from superopt.operators.functions import Exp
from superopt.operators.pointwise import Relu, Sqrt
from superopt.search.objectives.promises import GRAPH_OFF, KERNEL_OFF, LEAST_LEFT, LEAST_MORE, Promises, promise
from superopt.search.strategies.found import Found
from superopt.term import Graph, Term, variable

X = variable("x", (64, 64), "float32")
PRICES = {"relu": 1.0, "sqrt": 0.9, "exp": 0.5, "neg": 0.1}


@dataclass
class Priced:
    """The seconds of each operator that runs."""

    def cost(self, graph: Graph, most: float = math.inf) -> float:
        return math.fsum(seconds for _, seconds in self.breakdown(graph))

    def estimate(self, graph: Graph) -> float:
        return self.cost(graph)

    def breakdown(self, graph: Graph) -> list[tuple[Kernel, float]]:
        return [(kernel, PRICES[kernel.root.operator.name]) for kernel in cut(graph)]


def chain(*operators: Declared) -> Found:
    """A graph of operators one after the other."""
    term: Term = X
    for operator in operators:
        term = operator(term)
    graph = Graph((X,), (term,))
    return Found(graph, Priced().cost(graph), ())


START = chain(Relu(), Relu())
PROMISING, ALIKE, OTHER = chain(Sqrt(), Exp()), chain(Sqrt(), Exp(), Neg()), chain(Relu(), *[Neg()] * 6)


def promises(*graphs: Found) -> Promises:
    return Promises(START, graphs, Priced())


def test_what_promises_most_is_timed_first() -> None:
    assert promises(OTHER, ALIKE, PROMISING).foremost(1.0) is PROMISING


def test_what_was_told_of_is_not_asked_for_again() -> None:
    given, seen = promises(OTHER, ALIKE, PROMISING), list[Found]()
    while (found := given.foremost(1.0)) is not None:
        seen.append(found)
        given.tell(found, None)
    assert sorted(map(id, seen)) == sorted(map(id, (OTHER, ALIKE, PROMISING)))


def test_what_shares_kernels_with_a_graph_that_gained_little_is_expected_to_gain_less() -> None:
    """By their sums the one that is like it promises more than the other."""
    given = promises(PROMISING, ALIKE, OTHER)
    assert promise(START, ALIKE) > promise(START, OTHER)
    given.tell(PROMISING, 0.9 * promise(START, PROMISING))
    assert given.foremost(1.0) is OTHER


def test_what_shares_kernels_with_a_graph_that_gained_much_is_expected_to_gain_more() -> None:
    """By their sums it promises less than the other, which comes first where nothing was told."""
    less = chain(Sqrt(), Exp(), *[Neg()] * 3)
    assert promises(less, OTHER).foremost(1.0) is OTHER
    given = promises(PROMISING, less, OTHER)
    given.tell(PROMISING, 1.3 * promise(START, PROMISING))
    assert given.foremost(1.0) is less


@pytest.mark.parametrize(("share", "ends"), [(0.999, False), (1.001, True)])
def test_where_none_may_gain_more_than_the_best_no_more_are_timed(share: float, ends: bool) -> None:
    """What may be gained is what is promised, and its deviation."""
    same = Found(START.graph, START.cost / 1.1, ())
    off = math.hypot(GRAPH_OFF, 0.1 * KERNEL_OFF)  # its kernel is 1 of the start's seconds, and 1.1 of its own
    most = 1.1 * math.exp(off - LEAST_MORE)
    assert (promises(same).foremost(most * share) is None) == ends


def test_a_graph_that_takes_nothing_promises_no_more_than_whole_times_tell() -> None:
    nothing = Found(Graph((X,), (X,)), 0.0, ())
    assert promise(START, nothing) == pytest.approx(1 / LEAST_LEFT)
    assert promises(nothing, PROMISING).foremost(1.0) is nothing


def test_where_the_start_takes_nothing_no_gain_is_promised() -> None:
    nothing = Found(Graph((X,), (X,)), 0.0, ())
    assert promise(nothing, nothing) == 1.0
    assert Promises(nothing, [nothing], Priced()).foremost(1.0) is nothing


def test_of_no_graphs_none_is_timed() -> None:
    assert promises().foremost(1.0) is None
