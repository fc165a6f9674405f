"""Convolutions of single places to few channels are products, and of no others are they."""

from __future__ import annotations

import pytest
from onnx import TensorProto, helper

import superopt
from superopt.api import Options
from superopt.demands import assuming
from superopt.dim import Dim, symbol
from superopt.operators.conv import Conv
from superopt.operators.definitions.few_channels import FEW, of_whole_images, to_few_channels
from superopt.operators.matmul import MatMul
from superopt.term import Term, subterms, variable
from tests.models import assert_same, model, weight
from tests.operators.definitions.equality import assert_equal


def image(*shape: Dim) -> Term:
    return variable("x", shape)


def kernel(*shape: int) -> Term:
    return variable("k", shape, constant=True)


@pytest.mark.parametrize("given", [1, FEW])
@pytest.mark.parametrize("shape", [(1, 6, 4, 5), (3, 6, 4, 5), (1, 6, 7), (2, 6, 7), (2, 6, 2, 3, 4)], ids=str)
def test_to_few_channels_it_is_the_weights_times_the_image(shape: tuple[int, ...], given: int) -> None:
    ones = (1,) * (len(shape) - 2)
    conv = Conv(ones, (0,) * 2 * len(ones), ones)
    x, k = image(*shape), kernel(given, 6, *ones)
    found = assert_equal(to_few_channels(conv, x, k), conv(x, k))
    assert any(isinstance(t.operator, MatMul) for t in subterms(found))


def test_how_many_images_there_are_and_of_which_size_may_be_symbols() -> None:
    n, h = symbol("n"), symbol("h")
    with assuming():
        x, k = image(n, 6, h, h), kernel(1, 6, 1, 1)
        found, wanted = to_few_channels(Conv(), x, k), Conv()(x, k)
    assert found is not None
    assert found.shape == wanted.shape


@pytest.mark.parametrize(
    ("conv", "k"),
    [
        (Conv(), kernel(FEW + 1, 6, 1, 1)),
        (Conv(), kernel(1, 6, 3, 3)),
        (Conv((2, 2)), kernel(1, 6, 1, 1)),
        (Conv((1, 1), (1, 1, 1, 1)), kernel(1, 6, 1, 1)),
        (Conv(group=2), kernel(2, 3, 1, 1)),
        (Conv(), variable("k", (1, 6, 1, 1))),
    ],
    ids=["many channels", "windows", "every other place", "padded", "groups", "computed weights"],
)
def test_other_convolutions_are_no_such_product(conv: Conv, k: Term) -> None:
    assert to_few_channels(conv, image(1, 6, 4, 4), k) is None


def test_a_map_of_scores_is_computed_faster_and_is_the_same(options: Options) -> None:
    nodes = [helper.make_node("Conv", ["x", "w", "b"], ["y"])]
    ends = [("x", TensorProto.FLOAT, [1, 128, 64, 64]), ("y", TensorProto.FLOAT, [1, 1, 64, 64])]
    given = model(nodes, ends[:1], ends[1:], {"w": weight(1, 128, 1, 1), "b": weight(1)})
    result = superopt.optimize(given, options)
    assert result.report.outcome == "faster"
    assert_same(result.proto(), given)


@pytest.mark.parametrize("shape", [(3, 2, 4, 5), (3, 2, 7), (2, 3, 2, 4, 4)], ids=str)
def test_of_whole_images_it_is_a_layer(shape: tuple[int, ...]) -> None:
    ones = (1,) * (len(shape) - 2)
    conv = Conv(ones, (0,) * 2 * len(ones), ones)
    x, k = image(*shape), kernel(6, *shape[1:])
    found = assert_equal(of_whole_images(conv, x, k), conv(x, k))
    assert any(isinstance(t.operator, MatMul) for t in subterms(found))


@pytest.mark.parametrize(
    ("conv", "k"),
    [
        (Conv(), kernel(4, 6, 4, 3)),
        (Conv((1, 1), (1, 0, 0, 0)), kernel(4, 6, 4, 4)),
        (Conv(group=2), kernel(4, 3, 4, 4)),
        (Conv(), variable("k", (4, 6, 4, 4))),
    ],
    ids=["smaller windows", "padded", "groups", "computed weights"],
)
def test_of_other_windows_it_is_none(conv: Conv, k: Term) -> None:
    assert of_whole_images(conv, image(2, 6, 4, 4), k) is None


def test_patches_that_were_cut_before_are_embedded_faster_and_the_same(options: Options) -> None:
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"])]
    ends = [("x", TensorProto.FLOAT, [128, 3, 2, 14, 14]), ("y", TensorProto.FLOAT, [128, 256, 1, 1, 1])]
    given = model(nodes, ends[:1], ends[1:], {"w": weight(256, 3, 2, 14, 14)})
    result = superopt.optimize(given, options)
    assert result.report.outcome == "faster"
    assert_same(result.proto(), given)
