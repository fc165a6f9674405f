"""Pieces that are alike but for sizes: what was found for one is followed in the others."""

from __future__ import annotations

from functools import cache

import onnx
import pytest
from onnx import TensorProto, helper

from superopt.api import definitions
from superopt.arithmetic.floats import FLOAT
from superopt.cost.analytic import AnalyticCost
from superopt.demands import assuming
from superopt.dim import symbol
from superopt.evaluate import evaluate_all, sample
from superopt.onnx_io import load, understand
from superopt.operators.layout import Reshape
from superopt.operators.matmul import MatMul
from superopt.operators.pointwise import Add, Mul, Relu, Sqrt
from superopt.rules.format import load_rules, parse_file
from superopt.search.cutting.pieces import Piece, cut_into_pieces
from superopt.search.rewriting.matching import Matching
from superopt.search.rewriting.rewrites import ByRule, rewrites_of
from superopt.search.solving.following import followed, structure
from superopt.search.strategies.backtrack import backtrack
from superopt.search.strategies.found import (
    Applied,
    Found,
    Limits,
)
from superopt.shipped import shipped_rules
from superopt.term import Graph, Term, variable
from tests.models import model, weight

SHORTER = "(rule shorter (given (?x n c)) (from (relu (relu ?x))) (to (relu ?x)))"
"""For matrices alone."""
TOGETHER = """(rule together
  (given (?x n c) (?y c h) (?z c w))
  (from (matmul ?x ?y) (matmul ?x ?z))
  (to (slice 1 0 h (matmul ?x (concat 1 ?y ?z))) (slice 1 h (+ h w) (matmul ?x (concat 1 ?y ?z)))))"""


def block(channels: int, side: int, growth: int = 4, inner: int = 8) -> onnx.ModelProto:
    """A block of DenseNet: two convolutions behind their normalization and relu, joined to what they are of."""
    nodes, weights, last = [], {}, "x"
    for i, (c, out, k) in enumerate(((channels, inner, 1), (inner, growth, 3))):
        weights |= {f"{n}{i}": abs(weight(c, seed=s)) + 0.5 for s, n in enumerate(("scale", "bias", "mean", "var"))}
        weights[f"k{i}"] = weight(out, c, k, k, seed=i)
        nodes += [
            helper.make_node(
                "BatchNormalization", [last, *(f"{n}{i}" for n in ("scale", "bias", "mean", "var"))], [f"n{i}"]
            ),
            helper.make_node("Relu", [f"n{i}"], [f"r{i}"]),
            helper.make_node("Conv", [f"r{i}", f"k{i}"], [f"c{i}"], pads=[k // 2] * 4),
        ]
        last = f"c{i}"
    nodes.append(helper.make_node("Concat", ["x", last], ["y"], axis=1))
    ends = [
        ("x", TensorProto.FLOAT, [1, channels, side, side]),
        ("y", TensorProto.FLOAT, [1, channels + growth, side, side]),
    ]
    return model(nodes, ends[:1], ends[1:], weights)


@cache
def piece(channels: int, side: int, growth: int = 4) -> Piece:
    (found,) = cut_into_pieces(understand(load(block(channels, side, growth))))
    return found


@cache
def everything() -> Matching:
    rules = [rule for path in shipped_rules() for rule in load_rules(path).rules]
    return Matching(rewrites_of(rules, definitions()))


@cache
def found_of_a_block() -> list[Found]:
    outcome = backtrack(piece(16, 8).canonical, everything(), AnalyticCost(), Limits(expanded=12, alpha=20.0))
    return [found for found in outcome.best if found.steps]


def by(*texts: str) -> Matching:
    return Matching([ByRule(rule) for text in texts for rule in parse_file(text).rules])


def relus(count: int, *shape: int) -> Graph:
    x: Term = variable("x", shape, "float32")
    term = x
    for _ in range(count):
        term = Relu()(term)
    return Graph((x,), (term,))


def test_graphs_of_other_sizes_are_alike_and_those_of_other_operators_ranks_or_wiring_are_not() -> None:
    x, y = (variable(name, (2, 3), "float32") for name in "xy")
    assert structure(piece(16, 8).canonical.outputs) == structure(piece(24, 5, 6).canonical.outputs)
    sums = [(Add()(x, y),), (Add()(x, x),), (Mul()(x, y),), (Add()(x, y), Add()(x, y)), (Add()(x, Relu()(y)),), (x,)]
    others = [relus(1, 2, 3).outputs, relus(1, 2, 3, 4).outputs, (variable("x", (2, 3), "float32", constant=True),)]
    assert len({structure(roots) for roots in (*sums, *others)}) == len(sums) + len(others)


@pytest.mark.parametrize("sizes", [(16, 8, 4), (24, 5, 4), (8, 13, 6)])
def test_what_was_found_for_a_block_is_followed_in_another_and_computes_the_same(sizes: tuple[int, int, int]) -> None:
    first, other = piece(16, 8).canonical, piece(*sizes).canonical
    there = [same for found in found_of_a_block() if (same := followed(found, first, other, everything()))]
    assert len(there) == len(found_of_a_block()) > 5
    values = {v: abs(a) + 0.5 for v, a in sample(other.outputs, FLOAT, seed=1).items()}
    expected = evaluate_all(other.outputs, FLOAT, values)
    for found, same in zip(found_of_a_block(), there, strict=True):
        assert structure(same.graph.outputs) == structure(found.graph.outputs)
        assert [s.name for s in same.steps] == [s.name for s in found.steps]
        for ours, theirs in zip(evaluate_all(same.graph.outputs, FLOAT, values), expected, strict=True):
            assert abs(ours - theirs).max() <= 1e-4 * abs(theirs).max()


def test_in_the_graph_itself_what_is_followed_is_what_was_found() -> None:
    graph = piece(16, 8).canonical
    assert found_of_a_block()
    for found in found_of_a_block():
        same = followed(found, graph, graph, everything())
        assert same is not None
        assert same.graph.outputs == found.graph.outputs


def test_terms_that_are_replaced_together_are_followed_together() -> None:
    def products(m: int, k: int, n: int) -> Graph:
        x, *weights = (variable(v, s, "float32") for v, s in (("x", (m, k)), ("a", (k, n)), ("b", (k, n + 1))))
        return Graph((x, *weights), tuple(MatMul()(x, w) for w in weights))

    first, other = products(2, 3, 4), products(5, 6, 7)
    matching = by(TOGETHER)
    (application,) = [a for a in matching.applications(first) if a.roots == first.outputs]
    steps = tuple(Applied("together", "proved", (), old, new) for old, new in application.new.items())
    found = Found(Graph(first.inputs, tuple(application.new.values())), 1.0, steps)
    same = followed(found, first, other, matching)
    assert same is not None
    assert [o.operator.name for o in same.graph.outputs] == ["slice", "slice"]
    assert [o.shape for o in same.graph.outputs] == [o.shape for o in other.outputs]


def test_where_a_step_does_not_apply_nothing_is_followed() -> None:
    """A rule for matrices that was let loose on an image, as it could not be, and one that is not there."""
    first, other = relus(2, 2, 3), relus(2, 4, 5)
    (application,) = by(SHORTER).at(first.outputs[0])
    step = Applied("shorter", "proved", (), first.outputs[0], application.new[first.outputs[0]])
    found = Found(Graph(first.inputs, (step.after,)), 1.0, (step,))
    assert followed(found, first, other, by(SHORTER)) is not None
    assert followed(found, first, relus(2, 4, 5, 6), by(SHORTER)) is None
    assert followed(found, first, relus(3, 4, 5), by(SHORTER)) is None
    assert followed(found, first, other, by(SHORTER.replace("shorter", "another"))) is None
    elsewhere = Applied("shorter", "proved", (), first.outputs[0], Sqrt()(first.inputs[0]))
    assert followed(Found(found.graph, 1.0, (elsewhere,)), first, other, by(SHORTER)) is None


def test_where_symbols_may_be_equal_or_not_what_is_followed_is_the_same_nevertheless() -> None:
    """Sequences of a source and of a target, whose lengths are attributes of what reshapes them."""

    def reshaped(name: str) -> Graph:
        x = variable("x", (symbol(name), 4, 16), "float32")
        return Graph((x,), (Relu()(Relu()(Reshape((symbol(name), 64))(x))),))

    with assuming():
        first, other = reshaped("source"), reshaped("target")
    (application,) = by(SHORTER).at(first.outputs[0])
    steps = (Applied("shorter", "proved", (), first.outputs[0], application.new[first.outputs[0]]),)
    same = followed(Found(Graph(first.inputs, (steps[0].after,)), 1.0, steps), first, other, by(SHORTER))
    assert same is not None
    assert same.graph.outputs == (other.outputs[0].inputs[0],)
