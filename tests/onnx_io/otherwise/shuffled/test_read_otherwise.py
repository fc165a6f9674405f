"""Of channels that are made in pieces others read sizes, views and parts as they were."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
import pytest

from superopt.onnx_io import load, understand
from superopt.onnx_io.otherwise.shuffled import pieces, plan
from superopt.onnx_io.otherwise.shuffled.moves import Numbers
from tests.onnx_io.otherwise.shuffled.networks import Network, halves, shuffle, units
from tests.onnx_io.otherwise.shuffled.reading import moves


def sizes(net: Network, x: str) -> str:
    """The sizes of a value, as models of these tests give them."""
    return net.node("Cast", net.node("Shape", [x]), to=onnx.TensorProto.FLOAT)[0]


@pytest.mark.parametrize("batch", [1, "n"])
def test_places_that_a_view_joined_stay_joined(batch: int | str, block: int) -> None:
    net = units(batch=batch, how="asked")
    (rows,) = net.node("Reshape", ["shuffled", net.integers(0, 116, -1)])
    results = [sizes(net, rows), *net.node("Neg", [rows])]
    results += net.node("Conv", [net.node("Relu", [rows])[0], net.weights(8, 116, 3)])
    assert "Transpose" not in moves(net.model(["y", *results], 24))


def test_what_is_pooled_and_flattened_is_a_row_still(free: None, block: int) -> None:
    net = Network()
    x = shuffle(net, net.conv("x", 24, 38), 38, 28, "split")
    parts = net.node("Split", [net.node("GlobalAveragePool", [x])[0], net.integers(19, 19)], 2, axis=1)
    (flat,) = net.node("Flatten", [parts[0]])
    (z,) = net.node("Add", [flat, net.weights(1, 19)])
    assert "Transpose" not in moves(net.model([z, net.conv(parts[1], 19, 8)], 24))


def test_sizes_are_asked_in_old_opsets_too(free: None, block: int) -> None:
    net = Network(batch="n")
    x = shuffle(net, net.conv("x", 24, 116), 116, 28, "gathered")
    results = [net.conv(half, 58, 8) for half in halves(net, x, 116, "gathered")]
    assert "Gather" not in moves(net.model([*results, sizes(net, x)], 24, opset=9))


def test_sizes_are_asked_of_what_nothing_else_reads(free: None, block: int) -> None:
    net = Network(batch="n")
    x = shuffle(net, net.conv("x", 24, 116), 116, 28, "gathered")
    first, last = halves(net, x, 116, "split")
    assert "Split" not in moves(net.model([net.conv(first, 58, 8), sizes(net, last)], 24))


def test_a_gate_that_a_branch_reads_is_put_together(free: None, block: int) -> None:
    net = Network()
    first, last = halves(net, shuffle(net, net.conv("x", 24, 116), 116, 28, "split"), 116, "split")
    x = net.conv(first, 58, 58)
    (gate,) = net.node("Sigmoid", [x])
    (truth,) = net.node("Greater", [net.node("ReduceSum", [last], keepdims=0)[0], net.hold(np.zeros((), np.float32))])
    result = onnx.helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, None)
    bodies = [
        onnx.helper.make_graph([onnx.helper.make_node(op, ins, ["z"])], op, [], [result])
        for op, ins in (("Mul", [x, gate]), ("Abs", [last]))
    ]
    (chosen,) = net.node("If", [truth], then_branch=bodies[0], else_branch=bodies[1])
    assert "Transpose" not in moves(net.model([chosen, net.conv(last, 58, 8)], 24))


def test_a_source_is_asked_for_those_that_read_it_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[int]()

    def read_alike(channels: Numbers, read: Mapping[int, Numbers]) -> list[pieces.Group]:
        asked.append(len(read))
        return pieces.read_alike(channels, read)

    monkeypatch.setattr(plan, "read_alike", read_alike)
    understand(load(units(12, 36).model(["y"], 24)))
    assert max(asked) < 15  # of all sources, all are read by 25


def test_whole_values_that_are_shuffled_are_read_as_they_are(block: int) -> None:
    net = Network()
    (both,) = net.node("Concat", [net.node("Relu", [net.conv("x", 24, 64)])[0] for _ in range(2)], axis=1)
    y = net.conv(shuffle(net, both, 128, 28, "split"), 128, 64)
    assert moves(net.model([y], 24)) == {"Concat": 1}


def test_many_values_that_are_joined_are_not_shuffled() -> None:
    net = Network()
    (all_of_them,) = net.node("Concat", [net.conv("x", 24, 16) for _ in range(12)], axis=1)
    source = net.model([net.conv(all_of_them, 192, 64)], 24)
    assert "shuffled" not in understand(load(source)).ways
