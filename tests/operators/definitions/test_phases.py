"""Convolutions of few channels are those by phases: exactly."""

from __future__ import annotations

import itertools

import onnx
import pytest
from onnx import TensorProto, helper

import superopt
from superopt.api import Options
from superopt.demands import assuming
from superopt.dim import Shape, symbol
from superopt.onnx_io import load, rewritten, to_proto, understand
from superopt.operators.conv import Conv
from superopt.operators.definitions.phases import MOST, by_phases, in_steps
from superopt.operators.symbolic import resize
from superopt.term import Term, replace_all, subterms, variable
from tests.models import assert_same, model, weight
from tests.operators.definitions.equality import assert_equal

ONES = (1, 1)
KERNELS = [
    ((1, 1, 1, 1), (1, 3, 8, 12), (2, 3, 3, 3)),
    ((0, 0, 0, 0), (2, 4, 7, 10), (3, 4, 3, 2)),
    ((2, 0, 1, 3), (1, 2, 5, 9), (1, 2, 4, 1)),
    ((0, 4, 0, 0), (1, 1, 3, 6), (2, 1, 3, 7)),
]
STEPS = [*itertools.product(range(1, MOST + 1), repeat=2)]
FEW = [(1, 64, (3, 3)), (3, 32, (7, 7)), (8, 16, (3, 39)), (2, 6, (1, 9)), (1, 8, (5, 5)), (5, 3, (9, 1))]
LEFT = {
    "one place": (Conv(), (1, 16, 8, 8), (3, 16, 1, 1)),
    "a block of channels": (Conv(), (1, 16, 8, 8), (16, 16, 3, 3)),
    "most of a block": (Conv(), (1, 16, 8, 8), (12, 16, 3, 3)),
    "longer steps": (Conv((1, 2)), (1, 16, 8, 8), (3, 16, 3, 3)),
    "gaps": (Conv(dilations=(2, 1)), (1, 16, 8, 8), (3, 16, 3, 3)),
    "groups": (Conv(group=3), (1, 9, 8, 8), (3, 3, 3, 3)),
    "few places": (Conv(), (1, 16, 3, 3), (3, 16, 3, 3)),
    "one axis": (Conv((1,), (0, 0), (1,)), (1, 16, 8), (3, 16, 3)),
}


def given(conv: Conv, x: Shape, k: Shape) -> tuple[Term, Term, Term]:
    picture, kernel = variable("x", x, "float32"), variable("k", k, "float32", constant=True)
    return conv(picture, kernel), picture, kernel


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize(("pads", "x", "k"), KERNELS)
def test_in_steps_it_is_the_same_convolution(pads: Shape, x: Shape, k: Shape, steps: tuple[int, int]) -> None:
    """Of sizes that they divide and of others, wherever it is padded."""
    conv = Conv(ONES, pads)
    direct, *inputs = given(conv, x, k)
    assert_equal(in_steps(conv, inputs[0], inputs[1], steps), direct)


@pytest.mark.parametrize(("o", "c", "window"), FEW)
@pytest.mark.parametrize("size", [(16, 40), (21, 45)])
def test_few_channels_are_computed_by_phases(size: tuple[int, int], o: int, c: int, window: tuple[int, int]) -> None:
    conv = Conv(ONES, (window[0] // 2, window[1] // 2) * 2)
    direct, *inputs = given(conv, (1, c, *size), (o, c, *window))
    meaning = by_phases(conv, *inputs)
    assert_equal(meaning, direct)
    assert meaning is not None
    (inner,) = (t for t in subterms(meaning) if isinstance(t.operator, Conv))
    assert inner.inputs[1].constant
    assert inner.inputs[1].shape[0] > o


@pytest.mark.parametrize(("conv", "x", "k"), LEFT.values(), ids=LEFT)
def test_other_convolutions_are_left(conv: Conv, x: Shape, k: Shape) -> None:
    _, *inputs = given(conv, x, k)
    assert by_phases(conv, *inputs) is None


def test_a_kernel_that_is_computed_is_left() -> None:
    assert by_phases(Conv(), variable("x", (1, 16, 8, 8)), variable("k", (3, 16, 3, 3))) is None


def test_there_may_be_any_number_of_images() -> None:
    k = variable("k", (3, 16, 3, 3), constant=True)
    with assuming():
        any_number = by_phases(Conv(), variable("x", (symbol("n"), 16, 8, 8)), k)
    assert any_number is not None
    assert resize((any_number,), {"n": 2}) == (by_phases(Conv(), variable("x", (2, 16, 8, 8)), k),)


@pytest.mark.parametrize("size", [(3, 4), (8, 8), (9, 14)])
def test_rows_and_columns_may_be_any_number(size: tuple[int, int]) -> None:
    """Of steps that divide it and of others."""
    conv = Conv(ONES, (1, 1, 1, 1))
    with assuming():
        direct, *inputs = given(conv, (symbol("n"), 16, symbol("h"), symbol("w")), (3, 16, 3, 3))
        meaning = by_phases(conv, *inputs)
    assert meaning is not None
    sizes = {"n": 1, "h": size[0], "w": size[1]}
    assert_equal(resize((meaning,), sizes)[0], resize((direct,), sizes)[0])


def image(channels: int, results: int, kernel: int) -> onnx.ModelProto:
    """What generators end in."""
    pads = [kernel // 2] * 4
    nodes = [helper.make_node("Conv", ["x", "k", "b"], ["c"], pads=pads), helper.make_node("Tanh", ["c"], ["y"])]
    ends = [("x", TensorProto.FLOAT, [1, channels, 66, 67]), ("y", TensorProto.FLOAT, [1, results, 66, 67])]
    weights = {"k": weight(results, channels, kernel, kernel), "b": weight(results)}
    return model(nodes, ends[:1], ends[1:], weights)


def test_what_is_written_by_phases_is_the_same_to_the_runtime() -> None:
    given = image(32, 3, 7)
    program = understand(load(given))
    (direct,) = (t for t in subterms(program.made["c"]) if isinstance(t.operator, Conv))
    assert isinstance(direct.operator, Conv)
    meaning = by_phases(direct.operator, *direct.inputs[:2])
    assert meaning is not None
    (made,) = replace_all((program.made["c"],), {direct: meaning})
    written = to_proto(rewritten(program, {"c": made}, {}))
    assert {"Conv", "Transpose", "Slice"} <= {n.op_type for n in written.graph.node}
    assert_same(written, given)


def test_an_image_is_made_of_many_channels_faster_and_is_the_same(options: Options) -> None:
    """By phases, or by other steps that are as fast on some machines."""
    given = image(64, 1, 9)
    result = superopt.optimize(given, options)
    assert result.report.outcome == "faster"
    assert len(result.proto().graph.node) > len(given.graph.node)
    assert_same(result.proto(), given)
