"""Costs that are measured on the runtime."""

import math
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from superopt.cost.bench import Bench
from superopt.cost.measured import MeasuredCost
from superopt.cost.ort import OnnxRuntime
from superopt.cost.runtimes import runtime_named
from superopt.cost.table import Table
from superopt.cost.timed import time_alone, time_in_turns
from superopt.cost.timing import Timing
from superopt.cost.whole import fingerprint, written
from superopt.dim import symbol
from superopt.errors import OutOfTime, SuperoptError
from superopt.onnx_io import LARGE, DrawnWeights
from superopt.operators.layout import Reshape
from superopt.operators.matmul import MatMul
from superopt.operators.norms import RmsNorm
from superopt.operators.pointwise import Add, Relu, Sqrt
from superopt.term import Graph, Term, make, variable
from tests.cost.graphs import conv_block, graph, per_channel, tensor, weight
from tests.usable import where_usable

RUNTIME = OnnxRuntime()


@pytest.fixture
def table() -> Iterator[Table]:
    with Table(Path(":memory:")) as table:
        yield table


@pytest.fixture
def cost(table: Table, tmp_path: Path) -> MeasuredCost:
    return MeasuredCost(Bench(RUNTIME, table, opset=17, lock_directory=tmp_path))


def products(count: int, size: int) -> Graph:
    x: Term = tensor("x", size, size)
    for i in range(count):
        x = make(Relu(), (make(MatMul(), (x, weight(f"w{i}", size, size))),))
    return graph(x)


def test_cost_is_the_sum_of_the_kernels(cost: MeasuredCost) -> None:
    g = graph(make(Add(), (conv_block(tensor("x", 1, 8, 16, 16), "a", 8), tensor("y", 1, 8, 16, 16))))
    total = cost.cost(g)
    assert 0 < total < 1
    assert total == math.fsum(seconds for _, seconds in cost.breakdown(g))


def test_what_was_measured_is_not_measured_again(cost: MeasuredCost, table: Table, tmp_path: Path) -> None:
    g = graph(conv_block(conv_block(tensor("x", 1, 8, 16, 16), "a", 8), "b", 8))
    first = cost.cost(g)
    assert (cost.alone.measured, len(table)) == (1, 1)
    other = MeasuredCost(Bench(RUNTIME, table, opset=17, lock_directory=tmp_path))
    assert other.cost(g) == first
    assert other.alone.measured == 0


def test_the_table_is_believed(cost: MeasuredCost, table: Table) -> None:
    g = products(2, 16)
    for kernel, _ in MeasuredCost(Bench(RUNTIME, table, 17)).breakdown(g):
        table.put(RUNTIME.key, kernel.signature, Timing(2.0, 0.0, 7))
    assert cost.cost(g) == sum(2.0 for _ in cost.breakdown(g))


def test_a_larger_product_costs_more(cost: MeasuredCost) -> None:
    assert cost.cost(products(1, 256)) > 3 * cost.cost(products(1, 64))


def test_what_vanishes_costs_nothing(cost: MeasuredCost) -> None:
    constant = graph(make(Add(), (weight("a", 4), weight("b", 4))))
    assert cost.cost(constant) == 0
    assert cost.cost(Graph((x := tensor("x", 2, 2),), (x,))) == 0
    assert cost.alone.measured == 0


def test_a_reshape_between_kernels_moves_nothing(cost: MeasuredCost) -> None:
    x = tensor("x", 512, 2048)
    narrow, wide = (graph(Relu()(Reshape(shape)(Relu()(x)))) for shape in ((512, 2048), (2048, 512)))
    before, after = cost.whole(narrow, wide)
    assert before > 0.7 * after  # a copy would be a third of three
    ((_, seconds),) = [k for k in cost.breakdown(wide) if k[0].is_view]
    assert seconds < 0.05 * cost.cost(wide)


def test_the_call_itself_is_not_counted(cost: MeasuredCost) -> None:
    tiny = graph(make(Reshape((4, 1)), (tensor("x", 2, 2),)))
    with written([tiny], 17, DrawnWeights()) as (model,):
        assert 0 <= cost.cost(tiny) < time_alone(RUNTIME, model).seconds


def test_nothing_is_measured_past_the_deadline(table: Table, tmp_path: Path) -> None:
    late = MeasuredCost(Bench(RUNTIME, table, 17, deadline=time.monotonic() - 1, lock_directory=tmp_path))
    g = products(1, 16)
    with pytest.raises(OutOfTime):
        late.cost(g)
    MeasuredCost(Bench(RUNTIME, table, 17, lock_directory=tmp_path)).cost(g)
    assert late.cost(g) > 0


def test_symbolic_sizes_are_timed_at_the_values_that_are_given(table: Table, tmp_path: Path) -> None:
    x = tensor("x", symbol("n"), 256)
    g = graph(make(MatMul(), (x, weight("w", 256, 256))))
    small, large = (MeasuredCost(Bench(RUNTIME, table, 17, {"n": n}, lock_directory=tmp_path)) for n in (1, 512))
    assert large.cost(g) > 3 * small.cost(g)


def test_what_needs_a_newer_opset_than_a_model_may_have_costs_what_it_does_there(
    cost: MeasuredCost, table: Table, tmp_path: Path
) -> None:
    x, scale = tensor("x", 4, 64), weight("w", 64)
    g = graph(make(RmsNorm(1, 1e-5), (x, scale)))
    newer = MeasuredCost(Bench(RUNTIME, table, opset=17, highest=23, lock_directory=tmp_path))
    assert newer.cost(g) < math.inf
    assert cost.cost(g) == math.inf
    plain = graph(make(Relu(), (x,)))
    newer.whole(plain, g)
    with pytest.raises(SuperoptError):
        cost.whole(plain, g)


def test_a_kernel_that_cannot_run_costs_infinitely_much_for_a_reason(cost: MeasuredCost, table: Table) -> None:
    x = variable("x", (2, 2), "int8")  # ONNX has no square root of integers
    g = graph(make(Relu(), (make(Sqrt(), (x,)),)))
    assert cost.cost(g) == math.inf
    assert cost.alone.unrunnable
    assert all(cost.alone.unrunnable.values())
    assert len(table) == cost.alone.measured


def test_an_expand_of_an_input_is_part_of_its_consumer(cost: MeasuredCost) -> None:
    x, b = tensor("x", 1, 8, 16, 16), tensor("b", 8)
    cost.cost(graph(make(Add(), (x, per_channel(b, x)))))
    assert cost.alone.measured == 1


def test_a_graph_is_timed_whole_too() -> None:
    with written([products(2, 32)], 17, DrawnWeights()) as models:
        (timing,) = time_in_turns(RUNTIME, models)
    assert timing.seconds > 0
    assert timing.runs >= 7


def test_whole_graphs_are_timed_beside_each_other_once(cost: MeasuredCost, table: Table, tmp_path: Path) -> None:
    short, long = products(1, 64), products(6, 64)
    before, after = cost.whole(long, short)
    assert before > 1.5 * after
    assert len(table) == 2
    other = MeasuredCost(Bench(RUNTIME, table, opset=17, lock_directory=tmp_path, deadline=time.monotonic() - 1))
    assert other.whole(long, short) == (before, after)
    with pytest.raises(OutOfTime, match="whole pieces"):
        other.whole(products(2, 64), short)


def test_what_is_timed_within_models_of_another_size_is_timed_anew(table: Table, tmp_path: Path) -> None:
    """What a model goes through between two runs of a piece is not in the caches any more."""
    short, long = products(1, 64), products(6, 64)
    for number, beside in enumerate((0, 2**20, 2**26, 2**20)):
        MeasuredCost(Bench(RUNTIME, table, 17, lock_directory=tmp_path), beside).whole(long, short)
        assert len(table) == 2 * min(number + 1, 3)


def test_sizes_that_the_runtime_does_not_know_in_the_model_are_not_declared_where_a_piece_is_timed_whole(
    table: Table, tmp_path: Path
) -> None:
    """And what was timed so is not taken for what is timed with them."""
    x = tensor("x", symbol("n"), 64)
    short, long = graph(Relu()(x)), graph(Sqrt()(Relu()(make(MatMul(), (x, weight("w", 64, 64))))))
    for number, (lost, of) in enumerate(((False, (short, long)), (True, (short, long)), (True, (long, short)))):
        cost = MeasuredCost(Bench(RUNTIME, table, 17, {"n": 256}, lock_directory=tmp_path, loses_sizes=lost), 2**20)
        seconds = sorted(cost.whole(*of))
        assert seconds[1] > 2 * seconds[0], "it is timed at the size that is given"
        assert len(table) == 2 * min(number + 1, 2)


def test_a_fingerprint_tells_graphs_apart_but_for_names() -> None:
    x, y = tensor("x", 2, 3), tensor("y", 2, 3)
    different = [
        Relu()(x),
        Relu()(Relu()(x)),
        Add()(x, x),
        Add()(x, y),
        Relu()(tensor("x", 3, 2)),
        Relu()(weight("x", 2, 3)),
    ]
    assert len({fingerprint(graph(term)) for term in different}) == len(different)
    assert fingerprint(graph(Add()(x, y))) == fingerprint(graph(Add()(tensor("a", 2, 3), tensor("b", 2, 3))))
    assert fingerprint(graph(Relu()(x), Sqrt()(x))) != fingerprint(graph(Sqrt()(x), Relu()(x)))


@pytest.mark.parametrize("name", where_usable())
def test_large_weights_are_given_apart_and_used(name: str) -> None:
    g = graph(make(MatMul(), (tensor("x", 1, 4096), weight("w", 4096, 2304))))
    feeds = {"x": np.ones((1, 4096), np.float32)}
    runtime = runtime_named(name, 1)
    with written([g], 17, DrawnWeights()) as (path,):
        assert path.stat().st_size < 1000
        (held,) = onnx.load(path).graph.initializer
        assert len(held.raw_data) == 4 * 4096 * 2304 > LARGE
        (found,) = runtime.run(runtime.session(path), feeds)
    w = numpy_helper.to_array(held)
    np.testing.assert_allclose(found, feeds["x"] @ w, rtol=1e-3, atol=1e-4)
