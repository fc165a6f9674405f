"""Graphs written as models to be timed."""

from pathlib import Path

import onnx
import pytest
from onnx import numpy_helper

from superopt.cost.whole import MOST_AROUND, Unwritable, around, with_weights_made, written
from superopt.onnx_io import DrawnWeights, standalone
from superopt.operators.constant import filled
from superopt.operators.conv import Conv
from superopt.operators.layout import Concat, Reshape, Transpose
from superopt.operators.matmul import MatMul
from superopt.operators.pointwise import Add, Mul
from superopt.term import Graph, make, variables
from tests.cost.graphs import graph, per_channel, tensor, weight


def _merged() -> Graph:
    """A convolution by two kernels of which one is scaled, and a product by a transposed matrix, at batch 2."""
    x = tensor("x", 2, 3, 8, 8)
    scaled = make(Mul(), (weight("k", 4, 3, 1, 1), filled(0.5, (4, 3, 1, 1))))
    kernel = make(Concat(0), (scaled, weight("l", 5, 3, 1, 1)))
    y = make(Conv(), (x, kernel))
    biased = make(Add(), (y, per_channel(make(Add(), (weight("b", 9), weight("c", 9))), y)))
    rows = make(Reshape((2, 576)), (biased,))
    return graph(make(MatMul(), (rows, make(Transpose((1, 0)), (weight("m", 7, 576),)))))


def _made_of(model: onnx.ModelProto) -> tuple[list[str], list[list[int]]]:
    return [n.op_type for n in model.graph.node], sorted(list(w.dims) for w in model.graph.initializer)


def test_what_is_made_of_weights_is_a_weight_where_it_is_timed() -> None:
    leaves = variables(*with_weights_made(_merged()).outputs)
    assert {v.shape for v in leaves if v.constant} == {(9, 3, 1, 1), (9,), (576, 7)}


def test_a_model_that_is_timed_has_the_nodes_that_it_would_have_with_its_weights_computed() -> None:
    with written([_merged()], 17, DrawnWeights()) as (path,):
        timed = _made_of(onnx.load(path))
    assert timed == _made_of(standalone(_merged(), 17))
    assert timed == (["Conv", "Reshape", "MatMul"], [[2], [9], [9, 3, 1, 1], [576, 7]])


def test_weights_that_are_moved_are_as_large_as_they_were_where_a_graph_is_timed() -> None:
    heads = make(Transpose((1, 2, 0)), (make(Reshape((256, 32, 16)), (weight("w", 256, 512),)),))
    with written([graph(make(MatMul(), (tensor("x", 32, 7, 16), heads)))], 17, DrawnWeights()) as (path,):
        (held,) = onnx.load(path).graph.initializer
        numbers = numpy_helper.to_array(held, str(path.parent))
    assert numbers.shape == (32, 16, 256)
    assert numbers.std() == pytest.approx((2.0 / 256) ** 0.5, rel=0.05)


def test_numbers_and_repetitions_stay_where_a_graph_is_timed() -> None:
    x = tensor("x", 1, 3, 8, 8)
    g = graph(make(Mul(), (make(Add(), (x, per_channel(weight("b", 3), x))), filled(0.5, x.shape))))
    assert with_weights_made(g) is g


def test_where_no_folder_can_be_made_nothing_is_timed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "gone"))
    with (
        pytest.raises(Unwritable, match=r"cannot be written to be timed: .* TMPDIR"),
        written([_merged()], 17, DrawnWeights()),
    ):
        pass


def test_axes_that_are_not_to_be_declared_are_open_in_the_model_that_is_timed() -> None:
    x, y = tensor("x", 2, 3, 8), tensor("y", 2, 3, 8)
    with written([graph(make(Add(), (x, y)))], 17, DrawnWeights(), undeclared={"x": (0, 1)}) as (path,):
        given = onnx.load(path).graph.input
    sizes = {i.name: [d.dim_value or d.dim_param or None for d in i.type.tensor_type.shape.dim] for i in given}
    assert sizes == {"x": [None, None, 8], "y": [2, 3, 8]}


@pytest.mark.parametrize(
    ("weights", "activations", "expected"),
    [(5 * 2**20, 2**20, 2**23), (5 * 2**20, None, 2**23), (2**30, 2**20, MOST_AROUND), (0, 100, 128)],
)
def test_what_a_model_goes_through_is_told_in_powers_of_two(
    weights: int, activations: int | None, expected: int
) -> None:
    assert around(weights, activations) == expected
