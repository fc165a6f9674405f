"""Pools are those of pictures, those of one axis after the other, and means convolutions of each channel by itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import ceil

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import superopt
from superopt.api import Options
from superopt.arithmetic.field import FIELD
from superopt.arithmetic.floats import FLOAT
from superopt.arithmetic.order import ORDER
from superopt.demands import assuming
from superopt.dim import Shape, symbol
from superopt.evaluate import evaluate, sample
from superopt.operators.conv import Conv
from superopt.operators.definitions.blocks import BLOCK
from superopt.operators.definitions.pools import by_equal_weights, by_pictures, of_one_row, one_axis_after_the_other
from superopt.operators.reduce import AvgPool, MaxPool, Pool
from superopt.operators.symbolic import resize
from superopt.term import Term, subterms, variable
from tests.models import assert_same, model

Windows = tuple[Shape, Shape, Shape, Shape]

ROWS: list[tuple[Windows, Shape]] = [
    (((3,), (1,), (0, 0), (1,)), (2, 3, 9)),
    (((4,), (3,), (1, 3), (1,)), (1, 2, 11)),
    (((3,), (2,), (2, 1), (2,)), (1, 5, 10)),
]
PICTURES: list[tuple[Windows, Shape]] = [
    (((5, 7), (1, 1), (2, 3, 2, 3), (1, 1)), (2, 3, 8, 9)),
    (((5, 6), (2, 3), (0, 1, 4, 0), (1, 1)), (1, 4, 9, 11)),
    (((6, 5), (1, 2), (1, 4, 3, 2), (2, 1)), (1, 2, 12, 8)),
]
SMALL: list[tuple[Windows, Shape]] = [
    (((3, 3), (1, 1), (1, 1, 1, 1), (1, 1)), (1, 4, 6, 5)),
    (((2, 3), (2, 1), (0, 0, 0, 0), (1, 2)), (2, 3, 7, 8)),
    (((1, 4), (1, 3), (0, 2, 0, 3), (1, 1)), (1, 1, 5, 7)),
]
FRAMES: list[tuple[Windows, Shape]] = [
    (((2, 2, 2), (2, 2, 2), (0,) * 6, (1, 1, 1)), (1, 3, 4, 7, 6)),
    (((3, 2, 3), (1, 2, 1), (1, 0, 2, 2, 1, 1), (1, 1, 2)), (2, 2, 4, 5, 6)),
]
POOLS: dict[str, Callable[..., Pool]] = {
    "largest": MaxPool,
    "means of what there is": AvgPool,
    "means of whole windows": partial(AvgPool, whole=1),
}
MEANS = [*POOLS.values()][1:]


def assert_equal(meaning: Term | None, direct: Term) -> None:
    assert meaning is not None
    assert meaning.type == direct.type
    carriers = [ORDER, FLOAT] if isinstance(direct.operator, MaxPool) else [FIELD]
    for carrier in carriers:  # of the largest each is exact, and where there is no order it is nothing but a hash
        values = sample((direct,), carrier, 0)
        assert (evaluate(meaning, carrier, values) == evaluate(direct, carrier, values)).all()
    np.testing.assert_allclose(
        *(evaluate(t, FLOAT, sample((direct,), FLOAT, 1)) for t in (meaning, direct)), rtol=1e-12, atol=1e-14
    )


def in_pictures(shape: Shape, pool: Pool) -> Term | None:
    x = variable("x", shape, "float32")
    return {3: of_one_row, 4: one_axis_after_the_other, 5: by_pictures}[len(shape)](pool, x)


@pytest.mark.parametrize("pool", POOLS.values(), ids=POOLS)
@pytest.mark.parametrize(("windows", "shape"), [*ROWS, *PICTURES, *FRAMES])
def test_the_pools_of_pictures_are_the_same(windows: Windows, shape: Shape, pool: Callable[..., Pool]) -> None:
    op = pool(*windows)
    meaning = in_pictures(shape, op)
    assert_equal(meaning, op(variable("x", shape, "float32")))
    assert meaning is not None
    assert all(t.type.rank == 4 for t in subterms(meaning) if isinstance(t.operator, Pool))


@pytest.mark.parametrize("pool", MEANS)
@pytest.mark.parametrize(("windows", "shape"), [*ROWS, *SMALL, *PICTURES])
def test_a_mean_is_the_same_by_equal_weights(windows: Windows, shape: Shape, pool: Callable[..., Pool]) -> None:
    x, op = variable("x", shape, "float32"), pool(*windows)
    meaning = by_equal_weights(op, x)  # type: ignore[arg-type]
    assert_equal(meaning, op(x))
    assert meaning is not None
    (conv,) = (t for t in subterms(meaning) if isinstance(t.operator, Conv) and not t.constant)
    channels = int(shape[1])
    whole = channels if channels < BLOCK else BLOCK * ceil(channels / BLOCK)
    assert conv.operator.group == whole  # type: ignore[attr-defined]
    assert conv.inputs[1].constant


@pytest.mark.parametrize(("windows", "shape"), [*ROWS, *SMALL, *FRAMES])
def test_other_pools_are_left(windows: Windows, shape: Shape) -> None:
    x, op = variable("x", shape, "float32"), AvgPool(*windows)
    ways = {3: of_one_row, 5: by_pictures}
    assert one_axis_after_the_other(op, x) is None
    assert all(define(op, x) is None for rank, define in ways.items() if rank != len(shape))
    assert len(shape) != 5 or by_equal_weights(op, x) is None


def test_sizes_that_decide_nothing_may_be_symbols() -> None:
    h, whole, cut = symbol("h"), AvgPool((3, 3), pads=(1, 1, 1, 1), whole=1), AvgPool((3, 3), pads=(1, 1, 1, 1))
    with assuming():
        x = variable("x", (symbol("n"), 4, h, 8))
        made, row = by_equal_weights(whole, x), of_one_row(MaxPool((2,), (2,), (0, 0), (1,)), variable("x", (2, 3, h)))
        assert by_equal_weights(cut, x) is None  # how many count at the end is told by how long the axis is
    assert made is not None
    assert row is not None
    assert resize((made,), {"n": 2, "h": 7}) == (by_equal_weights(whole, variable("x", (2, 4, 7, 8))),)
    assert resize((row,), {"h": 6}) == (of_one_row(MaxPool((2,), (2,), (0, 0), (1,)), variable("x", (2, 3, 6))),)


def test_a_convolution_needs_to_know_its_channels_and_is_of_no_doubles() -> None:
    op = AvgPool((3, 3))
    with assuming():
        assert by_equal_weights(op, variable("x", (1, symbol("c"), 8, 8))) is None
    assert by_equal_weights(op, variable("x", (1, 4, 8, 8), "float64")) is None


def pooled(kind: str, shape: list[int], result: list[int], opset: int, **how: object) -> onnx.ModelProto:
    node = helper.make_node(kind, ["x"], ["y"], **how)
    return model([node], [("x", TensorProto.FLOAT, shape)], [("y", TensorProto.FLOAT, result)], opset=opset)


def test_a_moving_mean_is_faster_and_the_same(options: Options) -> None:
    """As series are taken apart into their trends."""
    given = pooled("AveragePool", [1, 128, 360], [1, 128, 336], 20, kernel_shape=[25])
    result = superopt.optimize(given, options)
    assert result.report.outcome == "faster"
    assert_same(result.proto(), given)


def test_a_large_window_is_pooled_faster_along_one_axis_after_the_other(options: Options) -> None:
    """As pyramids pool a map by windows of several sizes."""
    sizes = [1, 256, 20, 20]
    given = pooled("MaxPool", sizes, sizes, 17, kernel_shape=[13, 13], pads=[6] * 4)
    result = superopt.optimize(given, options)
    assert result.report.outcome == "faster"
    assert [n.op_type for n in result.proto().graph.node] == ["MaxPool", "MaxPool"]
    assert_same(result.proto(), given)
