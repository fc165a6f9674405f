"""Graphs that a search moves among: each once, and known before it is made."""

from __future__ import annotations

from superopt.cost.analytic import AnalyticCost
from superopt.operators.conv import Conv
from superopt.operators.layout import Expand
from superopt.operators.matmul import MatMul
from superopt.operators.meanings import FURTHER_DEFINITIONS
from superopt.operators.pointwise import Add, Mul, Relu
from superopt.rules.format import load_rules
from superopt.search.rewriting.matching import Matching
from superopt.search.rewriting.rewrites import rewrites_of
from superopt.search.strategies.found import Found
from superopt.search.strategies.space import Space, applied
from superopt.shipped import shipped_rules
from superopt.term import Graph, Term, variable

X, Y, Z = (variable(n, (8, 4), "float32") for n in "xyz")
V, W = (variable(n, (4, 4), "float32", constant=True) for n in "vw")
B = variable("b", (4,), "float32", constant=True)


def start() -> Graph:
    """Two products of one input, scaled and shifted."""
    shift = Expand((1,), (8, 4))(B)
    first = Relu()(Add()(Mul()(Add()(MatMul()(X, V), Y), Z), Mul()(Y, Z)))
    return Graph((X, Y, Z, V, W, B), (first, Add()(Mul()(MatMul()(X, W), shift), shift)))


def space(graph: Graph) -> tuple[Space, Matching]:
    matching = Matching(rewrites_of([r for path in shipped_rules() for r in load_rules(path).rules], []))
    return Space(graph, matching, AnalyticCost()), matching


def test_the_print_of_a_rewritten_graph_is_known_before_it_is_made() -> None:
    among, matching = space(start())
    checked = 0
    for here in (start(), *(f.graph for f in among.neighbours(Found(start(), 0.0, ())))):
        for application in matching.applications(here):
            known = among.print_after(here, application.new)
            assert known == among.print(applied(here, application.new))
            checked += 1
    assert checked > 20


def test_a_rewrite_is_tried_at_all_of_its_places_at_once() -> None:
    """Three convolutions along an axis: alone, none of them is worth being laid out as a picture's."""
    kernels = [variable(n, (8, 8, 3), "float32", constant=True) for n in "klm"]
    sound = variable("s", (1, 8, 40), "float32")
    term = sound
    for kernel in kernels:
        term = Relu()(Conv((1,), (1, 1), (1,))(term, kernel))
    graph = Graph((sound, *kernels), (term,))
    matching = Matching(rewrites_of([], [name for name in FURTHER_DEFINITIONS if name == "conv of one row"]))
    found = list(Space(graph, matching, AnalyticCost()).everywhere(Found(graph, 0.0, ())))
    assert [[s.name for s in f.steps] for f in found] == [["definition of conv of one row"] * 3]
    images = [t for t in found[0].graph.runs if isinstance(t.operator, Conv)]
    assert [len(t.shape) for t in images] == [4, 4, 4]


def test_no_graph_is_found_twice() -> None:
    among, _ = space(start())
    found = [f.graph for f in among.neighbours(Found(start(), 0.0, ()))]
    prints = {among.print(g) for g in (start(), *found)}
    assert len(found) > 3
    assert len(prints) == len(found) + 1 <= among.seen
    assert list(among.neighbours(Found(start(), 0.0, ()))) == []


def collapsible() -> tuple[Graph, Matching]:
    """Six pairs of layers below each other, each of which is one."""
    term, weights = X, list[Term]()
    for i in range(6):
        weights += (variable(f"{n}{i}", s, "float32", constant=True) for n, s in (("up", (4, 32)), ("down", (32, 4))))
        term = Relu()(MatMul()(MatMul()(term, weights[-2]), weights[-1]))
    graph = Graph((X, *weights), (term,))
    return graph, Matching(rewrites_of([], ["matmul"]))


def test_a_start_is_simplified_at_all_depths_at_once() -> None:
    graph, matching = collapsible()
    *_, found = Space(graph, matching, AnalyticCost()).simplified(Found(graph, 0.0, ()))
    assert sum(isinstance(t.operator, MatMul) for t in found.graph.runs) == 6


def test_past_its_time_a_start_is_simplified_near_its_inputs_alone() -> None:
    graph, matching = collapsible()
    among = Space(graph, matching, AnalyticCost()).simplified(Found(graph, 0.0, ()), deadline=0.0)
    assert all(sum(isinstance(t.operator, MatMul) for t in found.graph.runs) > 6 for found in among)
