"""Kernels and pieces whose weights are read from memory, timed beside copies of themselves."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from superopt.arithmetic.floats import FLOAT
from superopt.cost import bench
from superopt.cost.alone import Alone
from superopt.cost.bench import Bench
from superopt.cost.kernels import cut
from superopt.cost.measured import MeasuredCost
from superopt.cost.ort import OnnxRuntime
from superopt.cost.streamed import FEW_USES, MOST_BYTES, copied, copies
from superopt.cost.table import Table
from superopt.cost.timing import Timing
from superopt.cost.whole import written
from superopt.demands import assuming
from superopt.dim import symbol
from superopt.evaluate import evaluate
from superopt.operators.conv import Conv
from superopt.operators.layout import Expand
from superopt.operators.matmul import MatMul
from superopt.operators.nodes import concrete
from superopt.operators.picks import Slice
from superopt.operators.pointwise import Add, Relu
from superopt.term import REAL, Graph, make, variable, variables
from tests.cost.graphs import graph, tensor, weight

MODEL = 2**24


def product(rows: int, size: int = 512) -> Graph:
    return graph(make(MatMul(), (tensor("x", rows, size), weight("w", size, size))))


def convolution(places: int) -> Graph:
    return graph(make(Conv(), (tensor("x", 1, 512, places, 1), weight("k", 512, 512, 1, 1))))


FEW = [product(1), product(FEW_USES), convolution(1)]
TABLE = graph(make(Add(), (tensor("x", 512, 512), weight("t", 512, 512))))
OTHERS = [product(FEW_USES + 1), convolution(64), product(1, 64), TABLE, graph(make(Relu(), (tensor("x", 512),)))]


@pytest.mark.parametrize("few", FEW)
def test_what_uses_its_weights_a_few_times_has_as_many_copies_as_its_model_has_weights(few: Graph) -> None:
    assert [copies(few, touched) for touched in (2**19, MODEL, 2**40)] == [1, MODEL // 2**20, MOST_BYTES // 2**20]


@pytest.mark.parametrize("other", OTHERS)
def test_what_uses_them_often_or_has_few_is_alone(other: Graph) -> None:
    assert copies(other, 2**40) == 1


def test_values_that_are_more_than_the_weights_count_instead() -> None:
    shape = (FEW_USES * 2, 128, 128)
    mask = make(Expand((1, 2), shape), (weight("m", 128, 128),))
    masked = graph(make(Add(), (tensor("x", *shape), mask)))
    values = 2 * 4 * math.prod(shape)  # what is read and what is written, in bytes
    assert copies(masked, 2**40) == MOST_BYTES // values


def test_each_copy_computes_the_same_of_weights_and_inputs_of_its_own() -> None:
    one = graph(make(Add(), (make(MatMul(), (tensor("x", 2, 3), weight("w", 3, 4))), tensor("y", 2, 4))))
    three, rng = copied(one, 3), np.random.default_rng(0)
    leaves = [variables(output) for output in three.outputs]
    assert len({v.label for own in leaves for v in own}) == 9
    for output, own in zip(three.outputs, leaves, strict=True):
        values = [rng.standard_normal(concrete(v.shape, "input")) for v in own]
        expected = evaluate(one.outputs[0], FLOAT, dict(zip(variables(*one.outputs), values, strict=True)))
        found = evaluate(output, FLOAT, dict(zip(own, values, strict=True)))
        np.testing.assert_array_equal(found, expected)


def test_one_copy_is_the_graph_itself() -> None:
    assert copied(FEW[0], 1) is FEW[0]


@pytest.fixture
def timed(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """How many outputs the models have that are timed together."""
    seen: list[list[int]] = []

    @contextmanager
    def noted(graphs: Sequence[Graph], *rest: Any) -> Iterator[list[Path]]:
        seen.append([len(graph.outputs) for graph in graphs])
        with written(graphs, *rest) as models:
            yield models

    monkeypatch.setattr(bench, "written", noted)
    return seen


class Cached(OnnxRuntime):
    """Its caches hold the weights of models, as far as anybody can tell."""

    streams_weights = False


@pytest.mark.parametrize(
    ("runtime", "model", "count"), [(OnnxRuntime(), MODEL, 16), (OnnxRuntime(), 0, 1), (Cached(), MODEL, 1)]
)
def test_a_kernel_is_timed_with_its_copies_and_known_by_how_many(
    runtime: OnnxRuntime, model: int, count: int, timed: list[list[int]], tmp_path: Path
) -> None:
    with Table(Path(":memory:")) as table:
        for _ in range(2):  # it is timed once
            cost = MeasuredCost(Bench(runtime, table, 17, lock_directory=tmp_path), model)
            seconds = cost.cost(FEW[0])
        (kernel,), (row,) = cut(FEW[0]), table.rows()
    assert (row.signature, row.timing.seconds) == (
        kernel.signature if count == 1 else f"({count} of {kernel.signature})",
        seconds,
    )
    assert timed.count([count]) == 1 if count > 1 else {n for (n,) in timed} == {1}


def test_what_copies_take_is_shared_among_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(Alone, "_time", lambda self, graph, count=1: Timing(32.0, 16.0, 7))
    monkeypatch.setattr(Alone, "_overhead", lambda self: (8.0, 0.5))
    with Table(Path(":memory:")) as table:
        cost = MeasuredCost(Bench(OnnxRuntime(), table, 17, lock_directory=tmp_path), MODEL)
        assert cost.cost(FEW[0]) == (32.0 - 8.0) / 16
        assert [row.timing for row in table.rows()] == [Timing(1.5, 1.0, 7)]


def test_a_whole_piece_has_a_dozen_copies_and_takes_a_twelfth(timed: list[list[int]], tmp_path: Path) -> None:
    after = graph(make(Relu(), (FEW[0].outputs[0],)))
    with Table(Path(":memory:")) as table:
        cost = MeasuredCost(Bench(OnnxRuntime(), table, 17, lock_directory=tmp_path), MODEL)
        seconds = sorted(cost.whole(FEW[0], after))
        assert [12 * s for s in seconds] == pytest.approx(sorted(row.timing.seconds for row in table.rows()))
    assert timed == [[12, 12]]


@pytest.mark.parametrize("lost", [False, True])
def test_a_whole_piece_of_symbolic_sizes_has_them_too(lost: bool, timed: list[list[int]], tmp_path: Path) -> None:
    """What holds of its sizes by where it stands cannot be told of a copy."""
    with assuming():
        row = Slice(0, 0, 1)(variable("y", (symbol("n"), 512), REAL))
        before = graph(make(MatMul(), (row, weight("w", 512, 512))))
        after = graph(make(Relu(), before.outputs))
    with Table(Path(":memory:")) as table:
        cost = MeasuredCost(Bench(OnnxRuntime(), table, 17, {"n": 3}, lock_directory=tmp_path, loses_sizes=lost), MODEL)
        assert min(cost.whole(before, after)) > 0
    assert timed == [[12, 12]]
