"""Images stay in blocks of channels between convolutions; graphs are costed and timed in the place they stand in."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from onnx import TensorProto, helper

from superopt.cost.bench import Bench
from superopt.cost.blocks import SHARES
from superopt.cost.kernels import cut
from superopt.cost.layouts import ALONE, Place, between, kept_bytes
from superopt.cost.measured import CostInPlace, MeasuredCost
from superopt.cost.ort import OnnxRuntime
from superopt.cost.table import Table
from superopt.dim import symbol
from superopt.onnx_io import Program, load, understand
from superopt.operators.activations import LeakyRelu, Relu
from superopt.operators.conv import Conv
from superopt.operators.definitions.pictures import CHANNELS_FIRST, CHANNELS_LAST
from superopt.operators.interpolate import Interpolate
from superopt.operators.layout import Reshape, Transpose
from superopt.operators.normalize import Lrn
from superopt.operators.pointwise import Add
from superopt.operators.rearrange import repeated
from superopt.operators.reduce import GlobalAvgPool, MaxPool
from superopt.search.cutting.layouts import layouts_of
from superopt.search.cutting.pieces import cut_into_pieces
from superopt.term import Graph, Term, variable, variables
from tests.models import model, weight
from tests.onnx_io.networks import LIGHT

IMAGE = variable("x", (1, 32, 8, 8))
BYTES = 4 * 32 * 8 * 8


def conv(image: Term, outputs: int = 32, name: str = "k") -> Term:
    return Conv()(image, variable(name, (outputs, image.shape[1], 1, 1), constant=True))


def graph(*outputs: Term) -> Graph:
    return Graph(tuple(variables(*outputs)), outputs)


def kept(*outputs: Term, place: Place = ALONE) -> int:
    one = graph(*outputs)
    return kept_bytes(one, cut(one), place)


def test_an_image_between_convolutions_is_not_laid_out_back_and_anew() -> None:
    assert kept(conv(IMAGE)) == 0
    assert kept(conv(conv(IMAGE), name="l")) == 2 * BYTES
    assert kept(conv(Reshape((1, 32, 64, 1))(conv(IMAGE)), name="l")) == 0
    assert kept(conv(MaxPool((1, 1))(conv(IMAGE)), name="l")) == 2 * BYTES


def last(image: Term) -> Term:
    return Transpose(CHANNELS_LAST)(image)


def first(rows: Term) -> Term:
    return Transpose(CHANNELS_FIRST)(rows)


def test_what_is_transposed_as_it_is_laid_out_is_not_kept_and_what_lies_between_is() -> None:
    """Rows, a layer of them, a function and another layer, as convolutions of one picture."""
    rows = variable("x", (1, 8, 8, 32))
    pair = conv(Relu()(Lrn(5)(conv(first(rows)))), name="l")
    assert kept(last(pair)) == kept(pair) == 0, "what stands between takes no blocks"
    pair = conv(MaxPool((1, 1))(conv(first(rows))), name="l")
    assert kept(last(pair)) == kept(pair) == 2 * BYTES
    assert kept(conv(first(last(conv(IMAGE))), name="l")) == 0
    square = variable("y", (1, 32, 8, 32))
    assert kept(conv(first(conv(square)), name="l")) == 0, "its channels are those of another axis"


def test_an_image_that_something_else_reads_too_is_laid_out_back() -> None:
    between_both = conv(IMAGE)
    assert kept(conv(between_both, name="l"), Lrn(5)(between_both)) == BYTES
    assert kept(conv(between_both, name="l"), between_both) == BYTES


def test_what_leaves_the_blocks_at_its_end_takes_its_image_in_blocks() -> None:
    """A sum with something that comes as it is, and a leaky relu behind a sum, run alone."""
    plain = variable("p", (1, 32, 8, 8))
    assert kept(Add()(conv(conv(IMAGE), name="l"), plain)) == 2 * BYTES
    assert kept(LeakyRelu(0.1)(Add()(conv(conv(IMAGE), name="l"), conv(IMAGE, name="m")))) >= 2 * BYTES
    assert kept(LeakyRelu(0.1)(conv(conv(IMAGE), name="l"))) == 2 * BYTES


def of_nodes(*between: tuple[str, list[str]]) -> Program:
    """A convolution, nodes of their own behind it and another convolution."""
    nodes = [helper.make_node("Conv", ["x", "k"], ["a"])]
    for op, more in between:
        nodes.append(helper.make_node(op, [nodes[-1].output[0], *more], [nodes[-1].output[0] + "b"]))
    nodes.append(helper.make_node("Conv", [nodes[-1].output[0], "k"], ["y"]))
    shape, weights = [1, 32, 8, 8], {"k": weight(32, 32, 1, 1), "c": weight(32, 1, 1), "s": weight(1)[0]}
    given = [("x", TensorProto.FLOAT, shape)], [("y", TensorProto.FLOAT, shape)]
    return understand(load(model(nodes, *given, weights)))


@pytest.mark.parametrize(
    ("between", "stays"),
    [
        ([("Relu", [])], True),
        ([("LeakyRelu", [])], True),
        ([("Add", ["c"])], True),
        ([("Mul", ["s"])], True),
        ([("Add", ["c"]), ("LeakyRelu", [])], True),
        ([("Relu", []), ("LeakyRelu", [])], False),
        ([("Relu", []), ("Add", ["c"])], False),
        ([("Add", ["s"])], False),
    ],
    ids=str,
)
def test_what_is_folded_into_a_convolution_stays_in_blocks_in_nodes_of_its_own(
    between: list[tuple[str, list[str]]], stays: bool
) -> None:
    program = of_nodes(*between)
    last = program.steps[-1].node.inputs[0]
    assert last is not None
    layouts = layouts_of(program)
    assert (program.values[last.name or ""] in layouts.made) == stays


def test_what_stands_around_a_graph_keeps_its_borders_in_blocks() -> None:
    assert kept(conv(IMAGE), place=Place(frozenset({"x"}), (False,))) == BYTES
    assert kept(conv(IMAGE), place=Place(frozenset(), (True,))) == BYTES
    assert kept(conv(IMAGE), place=Place(frozenset({"x"}), (True,))) == 2 * BYTES


def test_a_graph_is_timed_between_convolutions_of_single_channels_where_it_stands_between_some() -> None:
    narrow = variable("y", (1, 3, 8, 8))
    alone = graph(conv(IMAGE), conv(narrow, 32, "l"))
    around = between(alone, Place(frozenset({"x", "y"}), (True, False)))
    assert between(alone, ALONE).outputs == alone.outputs
    assert [o.shape for o in around.outputs] == [o.shape for o in alone.outputs]
    groups = sorted(t.operator.group for t in around.runs if isinstance(t.operator, Conv))
    assert groups == [1, 1, 32, 32]  # y has no blocks, and the second output is not followed


def test_a_graph_of_symbolic_sizes_stands_between_convolutions_too() -> None:
    """An image padded at an end for a stride, as TensorFlow does, may be of any size: whether a window fits is open."""
    image = variable("x", (1, 16, symbol("h") + 1, symbol("w") + 1))
    around = between(graph(Relu()(image)), Place(frozenset({"x"}), (True,)))
    assert [t.operator.group for t in around.runs if isinstance(t.operator, Conv)] == [16, 16]


def test_the_cost_of_a_graph_is_that_of_its_kernels_less_what_layouts_save(tmp_path: Path) -> None:
    with Table(tmp_path / "timings.sqlite") as table:
        cost = MeasuredCost(Bench(OnnxRuntime(), table, opset=17, lock_directory=tmp_path))
        both = graph(conv(conv(IMAGE), name="l"))
        alone = sum(seconds for _, seconds in cost.breakdown(both))
        rate = alone / BYTES / 10
        cost.layout_s_per_byte = lambda: rate  # type: ignore[method-assign]
        assert cost.cost(both) == pytest.approx(0.8 * alone)
        assert cost.estimate(both) == pytest.approx(0.8 * alone)
        assert CostInPlace(cost, Place(frozenset({"x"}), (True,))).cost(both) == pytest.approx(0.6 * alone)


@pytest.mark.parametrize(
    "term",
    [MaxPool((2, 2), (2, 2))(conv(IMAGE)), GlobalAvgPool()(conv(IMAGE)), Interpolate((16, 16))(conv(IMAGE))],
    ids=str,
)
def test_what_another_kernel_computes_in_blocks_takes_its_share_of_the_time_alone(term: Term, tmp_path: Path) -> None:
    with Table(tmp_path / "timings.sqlite") as table:
        cost = MeasuredCost(Bench(OnnxRuntime(), table, opset=17, lock_directory=tmp_path))
        cost.layout_s_per_byte = lambda: 0.0  # type: ignore[method-assign]
        (_, made_s), (_, alone_s) = cost.breakdown(graph(term))
        expected = made_s + SHARES[type(term.operator)] * alone_s
        assert cost.cost(graph(term)) == cost.estimate(graph(term)) == pytest.approx(expected)


def test_places_are_repeated_in_blocks_as_fast_as_they_are_moved(tmp_path: Path) -> None:
    with Table(tmp_path / "timings.sqlite") as table:
        cost = MeasuredCost(Bench(OnnxRuntime(), table, opset=17, lock_directory=tmp_path))
        larger = graph(repeated(conv(IMAGE), (1, 1, 2, 2), within=True))
        (_, made_s), (_, alone_s) = cost.breakdown(larger)
        rate = alone_s / (4 * BYTES) / 3
        cost.layout_s_per_byte = lambda: rate  # type: ignore[method-assign]
        saved_s = BYTES * rate  # as the convolution's own image stays in blocks
        assert cost.cost(larger) == pytest.approx(made_s - saved_s + alone_s / 3)


def test_what_layouts_cost_is_measured_once(tmp_path: Path) -> None:
    with Table(tmp_path / "timings.sqlite") as table:
        first = MeasuredCost(Bench(OnnxRuntime(), table, opset=17, lock_directory=tmp_path)).layout_s_per_byte()
        late = MeasuredCost(
            Bench(OnnxRuntime(), table, opset=17, lock_directory=tmp_path, deadline=time.monotonic() - 1)
        )
        assert 0 <= first < 1e-8  # a hundred megabytes a second is slower than any memory
        assert late.layout_s_per_byte() == first


class WithoutBlocks(OnnxRuntime):
    keeps_blocks = False


def test_layouts_save_nothing_on_a_runtime_that_keeps_no_blocks(tmp_path: Path) -> None:
    with Table(tmp_path / "timings.sqlite") as table:
        cost = MeasuredCost(Bench(WithoutBlocks(), table, opset=17, lock_directory=tmp_path))
        both = graph(conv(conv(IMAGE), name="l"))
        alone = sum(seconds for _, seconds in cost.breakdown(both))
        cost.layout_s_per_byte = lambda: 1.0  # type: ignore[method-assign]
        assert cost.cost(both) == cost.estimate(both) == alone


def test_pieces_of_a_network_know_what_stands_around_them() -> None:
    pieces = cut_into_pieces(understand(load(next(n for n in LIGHT if "inception_v1" in n.name))))
    assert sum(bool(p.joined) for p in pieces) > len(pieces) / 2
    assert sum(any(p.followed) for p in pieces) > len(pieces) / 2
    assert not pieces[0].joined, "the picture comes as it is given"
    assert not any(pieces[-1].followed), "nobody reads the result"
