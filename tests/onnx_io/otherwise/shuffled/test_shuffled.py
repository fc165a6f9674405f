"""Channels that are shuffled between convolutions are made where they are read, and all that is read is the same."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from superopt.onnx_io import load, understand
from superopt.onnx_io.otherwise.shuffled import pieces, shuffled
from tests.onnx_io.otherwise.reading import gain, operators_of
from tests.onnx_io.otherwise.shuffled.networks import Network, halves, shuffle, unit, units
from tests.onnx_io.otherwise.shuffled.reading import feeds, moves


@pytest.mark.parametrize("act", ["Relu", "LeakyRelu", "SiLU", "HardSwish"])
@pytest.mark.parametrize("how", ["split", "sliced", "gathered"])
def test_nothing_is_shuffled_nor_split(how: str, act: str, block: int) -> None:
    assert moves(units(how=how, act=act).model(["y"], 24)) == {"Concat": 3}


def test_a_batch_of_any_size_is_one_still(block: int) -> None:
    left = moves(units(how="asked", batch="n").model(["y"], 24))
    assert not {"Reshape", "Split", "Transpose"} & set(left)


def test_a_batch_of_several_is_taken_as_well(block: int) -> None:
    net = units(batch=4, how="asked")
    assert moves(net.model(["y"], 24)) == {"Concat": 3}


def test_what_others_read_is_put_together_for_them(block: int) -> None:
    net = units()
    (net.node("Add", ["shuffled", "shuffled"]), net.node("Tanh", [net.nodes[-1].output[0]]))
    left = moves(net.model(["y", net.nodes[-1].output[0], "shuffled"], 24))
    assert left["Gather"] == 1
    assert not {"Split", "Transpose"} & set(left)


def test_a_branch_reads_what_is_put_together(block: int) -> None:
    net = units()
    (truth,) = net.node("Greater", [net.node("ReduceSum", ["y"], keepdims=0)[0], net.hold(np.zeros((), np.float32))])
    result = onnx.helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, None)
    bodies = [
        onnx.helper.make_graph([onnx.helper.make_node(op, ["shuffled"], ["z"])], op, [], [result])
        for op in ("Exp", "Tanh")
    ]
    (chosen,) = net.node("If", [truth], then_branch=bodies[0], else_branch=bodies[1])
    assert "Transpose" not in moves(net.model([chosen], 24))


def test_what_strides_reads_all_once(block: int) -> None:
    net = units()
    x = net.conv("shuffled", 116, 116, 3, 2, 116)
    (x,) = net.node("Relu", [net.conv(x, 116, 58)])
    (y,) = net.node("MaxPool", ["shuffled"], kernel_shape=[2, 2], strides=[2, 2])
    (z,) = net.node("Concat", [x, net.node("Conv", [y, net.weights(58, 116, 1, 1)])[0]], axis=1)
    assert moves(net.model([z, "y"], 24))["Concat"] == 4


def test_a_channel_may_be_read_twice(block: int) -> None:
    net = units()
    (twice,) = net.node("Gather", ["shuffled", net.integers(*range(0, 116, 2), *range(58))], axis=1)
    (z,) = net.node("Conv", [twice, net.weights(32, 116, 3, 3)], pads=[1, 1, 1, 1])
    assert not {"Gather", "Transpose"} & set(moves(net.model(["y", z], 24)))


def test_norms_that_train_read_what_they_did() -> None:
    net = units()
    net.node(
        "BatchNormalization", ["shuffled", *(net.weights(116) for _ in range(3)), net.hold(np.ones(116, np.float32))]
    )
    source = net.model([net.nodes[-1].output[0], "y"], 24)
    training = onnx.helper.make_attribute("training_mode", 1)
    source.graph.node[-1].attribute.append(training)
    source.graph.node[-1].output.extend(["mean", "variance"])
    assert moves(source)["Gather"] == 1


def test_where_little_is_copied_it_stays() -> None:
    net = Network(places=2)
    x = net.conv("x", 24, 116)
    net.node("Relu", [net.conv(unit(net, shuffle(net, x, 116, 2, "split"), 116), 116, 64)])
    source = net.model([net.nodes[-1].output[0]], 24)
    assert "shuffled" not in understand(load(source)).ways


def test_halves_that_follow_each_other_stay() -> None:
    net = Network()
    first, last = halves(net, net.conv("x", 24, 116), 116, "split")
    (both,) = net.node("Concat", [last, first], axis=1)
    (y,) = net.node("Conv", [both, net.weights(64, 116, 1, 1)])
    assert "shuffled" not in understand(load(net.model([y], 24))).ways


def test_other_types_than_32_bits_stay() -> None:
    source = units().model(["y"], 24)
    for held in source.graph.initializer:
        if held.data_type == onnx.TensorProto.FLOAT:
            held.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(held).astype(np.float64), held.name))
    for value in (*source.graph.input, *source.graph.output):
        value.type.tensor_type.elem_type = onnx.TensorProto.DOUBLE
    del source.graph.value_info[:]
    assert "shuffled" not in understand(load(source)).ways


def test_it_gains() -> None:
    source = units(4).model(["y"], 24)
    assert gain(source, feeds(source)) > 1.1


KINDS = st.sampled_from(["cut", "all", "each"])
ORDERS = st.lists(st.tuples(st.integers(0, 5), st.permutations(range(20)), KINDS), min_size=2, max_size=6)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(ORDERS, st.sampled_from([8, 16]))
def test_any_order_of_channels_is_read_as_it_was(orders: list[tuple[int, list[int], str]], blocks: int) -> None:
    net = Network(places=3)
    values = [net.conv("x", 24, 20), net.conv("x", 24, 20)]
    for which, order, kind in orders:
        a, b = values[which % len(values)], values[(which + 1) % len(values)]
        (both,) = net.node("Concat", [a, b], axis=1)
        (mixed,) = net.node("Gather", [both, net.integers(*(2 * i + which % 2 for i in order))], axis=1)
        if kind == "each":
            values.append(net.conv(mixed, 20, 20, 3, group=20))
        elif kind == "all":
            values.append(net.node("Relu", [net.conv(mixed, 20, 20)])[0])
        else:
            values.append(mixed)
    source = net.model([net.conv(values[-1], 20, 8), values[len(values) // 2]], 24)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "block", lambda: blocks)
        patch.setattr(shuffled, "cost_of", lambda *_: -1.0)
        operators_of(source, feeds(source))
