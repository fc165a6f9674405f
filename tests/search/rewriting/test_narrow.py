"""Constants that are repeated are kept small, with the same values; so files do not grow."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from superopt.arithmetic.field import FIELD
from superopt.cost.analytic import AnalyticCost
from superopt.evaluate import evaluate, sample
from superopt.onnx_io import load, rewritten, save, understand
from superopt.operators.conv import Conv
from superopt.operators.layout import Concat, Expand, Reshape, Transpose
from superopt.operators.matmul import MatMul
from superopt.operators.picks import Slice
from superopt.operators.pointwise import Add, Mul, Relu
from superopt.rules.format import load_rules
from superopt.search.cutting.pieces import cut_into_pieces
from superopt.search.rewriting.matching import Matching
from superopt.search.rewriting.narrow import narrowed
from superopt.search.rewriting.rewrites import Unfold, rewrites_of
from superopt.search.strategies.backtrack import backtrack
from superopt.search.strategies.found import Limits
from superopt.shipped import shipped_rules
from superopt.term import Graph, Term, variable, variables
from tests.models import model, weight

SHAPE = (2, 3, 4, 5)
A, B = (variable(n, (3,), constant=True) for n in "ab")
ROW, ONE = variable("row", (5,), constant=True), variable("one", (), constant=True)
DATA = variable("x", SHAPE)


def spread(term: Term, *axes: int) -> Term:
    return Expand(axes, SHAPE)(term)


def stacked(name: str, *shape: int) -> Term:
    return Expand((1, 2), (4, *shape))(variable(name, shape, constant=True))


@pytest.mark.parametrize(
    ("term", "size"),
    [
        (Add()(spread(A, 1), spread(B, 1)), 3),
        (Mul()(spread(A, 1), spread(ONE)), 3),
        (Add()(spread(ONE), spread(ONE)), 1),
        (Add()(spread(A, 1), spread(ROW, 3)), 15),
        (Mul()(Add()(spread(A, 1), spread(B, 1)), spread(ONE)), 3),
        (Relu()(spread(A, 1)), 3),
        (MatMul()(Expand((1,), (6, 3))(A), variable("w", (3, 7), constant=True)), 7),
        (MatMul()(stacked("u", 6, 3), stacked("w", 3, 7)), 42),
        (MatMul()(Expand((2,), (4, 6, 3))(A), stacked("w", 3, 7)), 7),
        (Concat(1)(spread(A, 1), spread(B, 1)), 6),
        (Concat(1)(spread(ROW, 3), spread(ONE)), 30),
        (Concat(0)(spread(A, 1), spread(A, 1)), 12),
        (Transpose((0, 2, 3, 1))(spread(A, 1)), 3),
        (Transpose((3, 1, 0, 2))(spread(variable("m", (3, 5), constant=True), 1, 3)), 15),
        (Transpose((1, 0, 3, 2))(spread(ONE)), 1),
        (Reshape((24, 5))(spread(ROW, 3)), 5),
        (Reshape((2, 3, 20))(spread(A, 1)), 60),
        (Reshape((2, 3, 4, 5, 1))(spread(A, 1)), 3),
        (Reshape((1, 2, 12, 5))(spread(ROW, 3)), 5),
        (Reshape((6, 20))(spread(ONE)), 1),
        (Conv()(spread(A, 1), variable("w", (7, 3, 3, 2), constant=True)), 7),
        (Conv((2, 1), (0, 0, 0, 0), (1, 2), 3)(spread(A, 1), variable("w", (6, 1, 2, 2), constant=True)), 6),
        (Slice(1, 1, 3)(stacked("w", 6, 3)), 6),
        (Slice(3, 0, 2)(spread(A, 1)), 6),
        (Slice(3, 0, 2)(spread(ROW, 3)), 2),
    ],
    ids=str,
)
def test_what_repeated_constants_make_is_computed_small(term: Term, size: int) -> None:
    (found,) = narrowed((term,))
    assert narrowed((found,)) == (found,)
    assert isinstance(found.operator, Expand)
    assert np.prod([int(d) for d in found.inputs[0].shape]) == size
    assert found.type == term.type
    if term.operator.name != "relu":  # which has no meaning in the field
        values = sample((term,), FIELD, 0)
        assert set(values) == set(variables(term))
        assert (evaluate(found, FIELD, values) == evaluate(term, FIELD, values)).all()


def test_what_is_reshaped_to_what_was_repeated_is_that() -> None:
    rows = variable("rows", (4, 5), constant=True)
    assert narrowed((Reshape((4, 5))(Expand((1, 2), (1, 4, 5))(rows)),)) == (rows,)


@pytest.mark.parametrize(
    "term",
    [
        Add()(DATA, spread(A, 1)),
        Conv((1, 1), (0, 1, 0, 0))(spread(A, 1), variable("w", (7, 3, 3, 2), constant=True)),
        Add()(spread(variable("w", SHAPE, constant=True), 0, 1, 2, 3), spread(A, 1)),
        Transpose((0, 2, 1))(Expand((1, 2), (1, 3, 4))(variable("w", (3, 4), constant=True))),
    ],
)
def test_nothing_else_is_changed(term: Term) -> None:
    assert narrowed((term,)) == (term,)


class Apart(AnalyticCost):
    """No two graphs cost the same, so that all of them are kept."""

    moments: ClassVar[Iterator[int]] = itertools.count()

    def cost(self, graph: Graph, most: float = math.inf) -> float:
        return super().cost(graph) + 1e-12 * next(self.moments)


def test_folding_makes_no_file_larger_than_is_allowed(tmp_path: Path) -> None:
    """At ten per cent and 1 MB more; each of these images alone has 1.6 MB."""
    shape, names = [1, 128, 56, 56], ["s", "t", "m", "v"]
    nodes = [
        helper.make_node("BatchNormalization", ["x", *names], ["n"]),
        helper.make_node("Mul", ["n", "c"], ["p"]),
        helper.make_node("Add", ["p", "d"], ["y"]),
    ]
    weights = {n: np.abs(weight(128, seed=i)) + 0.5 for i, n in enumerate(names)}
    weights |= {n: weight(128, 1, 1, seed=i) for i, n in enumerate("cd")}
    given = model(nodes, [("x", TensorProto.FLOAT, shape)], [("y", TensorProto.FLOAT, shape)], weights)
    program = understand(load(given))
    (piece,) = cut_into_pieces(program)
    rules = [r for path in shipped_rules() for r in load_rules(path).rules]
    limits = Limits(expanded=12, alpha=3.0, keep=100)
    outcome = backtrack(piece.canonical, Matching(rewrites_of(rules, ["batchnorm"])), Apart(), limits)
    tried = [f for f in outcome.best if f is not outcome.start]
    assert len(tried) > 5
    for found in tried:
        new = dict(zip(piece.names, piece.placed(found.graph.outputs), strict=True))
        save(rewritten(program, new, piece.origins), tmp_path / "m.onnx")
        onnx.checker.check_model(tmp_path / "m.onnx", full_check=True)
        assert (tmp_path / "m.onnx").stat().st_size < 1.1 * given.ByteSize() + 2**20
    assert Unfold("batchnorm").name in {s.name for f in tried for s in f.steps}
