"""Kernels and pieces whose weights are read from memory, timed beside copies of themselves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from superopt.arithmetic import FLOAT
from superopt.cost.kernels import cut
from superopt.cost.measured import MeasuredCost
from superopt.cost.ort import OnnxRuntime
from superopt.cost.streamed import FEW_USES, MOST_BYTES, copied, copies
from superopt.cost.table import Table
from superopt.evaluate import evaluate
from superopt.operators.declare import concrete
from superopt.operators.linear import Conv, MatMul
from superopt.operators.pointwise import Add, Relu
from superopt.term import Graph, make, variables
from tests.cost.graphs import graph, tensor, weight

MODEL = 2**24


def product(rows: int, size: int = 512) -> Graph:
    return graph(make(MatMul(), (tensor("x", rows, size), weight("w", size, size))))


def convolution(places: int) -> Graph:
    return graph(make(Conv(), (tensor("x", 1, 512, places, 1), weight("k", 512, 512, 1, 1))))


FEW = [product(1), product(FEW_USES), convolution(1)]
OTHERS = [product(FEW_USES + 1), convolution(64), product(1, 64), graph(make(Relu(), (tensor("x", 512),)))]


@pytest.mark.parametrize("few", FEW)
def test_what_uses_its_weights_a_few_times_has_as_many_copies_as_its_model_has_weights(few: Graph) -> None:
    assert [copies(few, touched) for touched in (2**19, MODEL, 2**40)] == [1, MODEL // 2**20, MOST_BYTES // 2**20]


@pytest.mark.parametrize("other", OTHERS)
def test_what_uses_them_often_or_has_few_is_alone(other: Graph) -> None:
    assert copies(other, 2**40) == 1


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


def test_a_kernel_is_known_by_how_many_were_timed_together(tmp_path: Path) -> None:
    with Table(Path(":memory:")) as table:
        seconds = {}
        for model in (0, MODEL, MODEL):
            cost = MeasuredCost(OnnxRuntime(), table, 17, lock_directory=tmp_path, around=model)
            seconds[model] = cost.cost(FEW[0])
        (kernel,) = cut(FEW[0])
        assert {row.signature: row.timing.seconds for row in table.rows()} == {
            kernel.signature: seconds[0],
            f"(16 of {kernel.signature})": seconds[MODEL],
        }


class Cached(OnnxRuntime):
    """Its caches hold the weights of models, as far as anybody can tell."""

    streams_weights = False


def test_where_caches_hold_all_weights_each_kernel_is_timed_alone(tmp_path: Path) -> None:
    with Table(Path(":memory:")) as table:
        MeasuredCost(Cached(), table, 17, lock_directory=tmp_path, around=MODEL).cost(FEW[0])
        assert [row.signature for row in table.rows()] == [cut(FEW[0])[0].signature]


def test_what_one_of_them_takes_is_told_of_a_whole_piece(tmp_path: Path) -> None:
    """A dozen products of one row take more than ten times what one of them does."""
    few = graph(make(Relu(), (FEW[0].outputs[0],)))
    with Table(Path(":memory:")) as table:
        cost = MeasuredCost(OnnxRuntime(), table, 17, lock_directory=tmp_path, around=MODEL)
        one_s, _ = cost.whole(FEW[0], few)
        assert max(row.timing.seconds for row in table.rows()) > 10 * one_s
