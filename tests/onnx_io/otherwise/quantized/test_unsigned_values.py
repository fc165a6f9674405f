"""Values that are quantized to bytes with a sign are so to bytes without one, that stand for the same numbers."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from superopt.onnx_io import load, understand
from superopt.onnx_io.otherwise.quantized import bytes as of_bytes
from superopt.onnx_io.otherwise.quantized import unsigned_values
from tests.onnx_io.networks import Array
from tests.onnx_io.otherwise.quantized.quantized_nodes import Held, model, pair, weights
from tests.onnx_io.otherwise.reading import gain, operators_of

RNG = np.random.default_rng(0)
FED = {"x": RNG.standard_normal((1, 4, 6, 6)).astype(np.float32) * 4}


def convolution(largest: int = 50, between: tuple[onnx.NodeProto, ...] = (), zero: int = -5) -> onnx.ModelProto:
    """A convolution between values of bytes with a sign."""
    held: Held = {}
    data = RNG.integers(-largest, largest, (4, 4, 1, 1)).astype(np.int8)
    nodes = [*pair("x", "a", held, 0.05, np.int8(zero)), weights("w", held, data, np.int8(0))]
    nodes += [helper.make_node("Conv", ["a", "w"], ["c"]), *pair("c", "d", held, 0.04, np.int8(3))]
    nodes += between or (helper.make_node("Relu", ["d"], ["y"]),)
    return model(nodes, held, (1, 4, 6, 6), (1, 4, 6, 6))


def types(source: onnx.ModelProto) -> set[str]:
    """Of which types values are quantized, in a model as it is read."""
    made = onnx.shape_inference.infer_shapes(ir.to_proto(understand(load(source)).model))
    given = {name for n in made.graph.node if n.op_type == "QuantizeLinear" for name in n.output}
    known = {v.name: v.type.tensor_type.elem_type for v in made.graph.value_info}
    return {TensorProto.DataType.Name(known[name]) for name in given}


def test_values_are_quantized_to_bytes_without_a_sign_and_all_is_the_same() -> None:
    source = convolution()
    assert types(source) == {"UINT8"}
    assert operators_of(source, FED, rounds=False) == [n.op_type for n in source.graph.node]


def test_what_is_moved_on_the_way_is_so_too() -> None:
    held: Held = {}
    nodes = pair("x", "a", held, 0.05, np.int8(7))
    nodes[1].input[0] = "moved"
    nodes.insert(1, helper.make_node("Transpose", ["a_quantized"], ["turned"], perm=[0, 2, 3, 1]))
    nodes.insert(2, helper.make_node("Concat", ["turned", "turned"], ["moved"], axis=3))
    nodes.append(helper.make_node("Relu", ["a"], ["y"]))
    source = model(nodes, held, (1, 4, 6, 6), (1, 6, 6, 8))
    assert types(source) == {"UINT8"}
    operators_of(source, FED, rounds=False)


def test_a_zero_point_that_is_left_out_is_told_of_bytes_without_a_sign() -> None:
    source = convolution(zero=0)
    del source.graph.node[1].input[2]
    assert types(source) == {"UINT8"}
    operators_of(source, FED, rounds=False)


def channels(opset: int = 17, **said: int) -> onnx.ModelProto:
    """Values that are quantized by other scales along an axis, where no zero point is told of them."""
    of = (1, 2, 6, 6) if "block_size" in said else (4,)
    held: Held = {"s": RNG.uniform(0.02, 0.05, of).astype(np.float32), "z": np.zeros(of, np.int8)}
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], axis=1, **said),
        helper.make_node("DequantizeLinear", ["q", "s"], ["d"], axis=1, **said),
        helper.make_node("Relu", ["d"], ["y"]),
    ]
    return model(nodes, held, (1, 4, 6, 6), (1, 4, 6, 6), opset)


@pytest.mark.parametrize("source", [channels(), channels(21, block_size=2)], ids=["channels", "blocks"])
def test_a_zero_point_that_is_left_out_is_told_for_each_scale(source: onnx.ModelProto) -> None:
    assert types(source) == {"UINT8"}
    operators_of(source, FED, rounds=False)


def test_numbers_stay_of_the_type_that_is_told_of_them() -> None:
    source = convolution()
    source.opset_import[0].version = 23
    shown = helper.make_node("Cast", ["d"], ["y"], to=TensorProto.FLOAT)
    source.graph.node[-1].CopyFrom(shown)
    source.graph.node[-2].attribute.append(helper.make_attribute("output_dtype", TensorProto.FLOAT16))
    made = ir.to_proto(understand(load(source)).model)
    made_of = {n.output[0]: n for n in made.graph.node}["d"]
    assert [a.i for a in made_of.attribute if a.name == "output_dtype"] == [TensorProto.FLOAT16]


def product(constant: Array, zero: Array) -> onnx.ModelProto:
    """A constant matrix of bytes, by values of bytes with a sign."""
    held: Held = {"w": constant, "wz": np.zeros((), constant.dtype), "s": np.float32(0.05), "z": np.int8(9), "yz": zero}
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("QLinearMatMul", ["w", "s", "wz", "q", "s", "z", "s", "yz"], ["p"]),
        helper.make_node("DequantizeLinear", ["p", "s", "yz"], ["y"]),
    ]
    return model(nodes, held, (1, 4, 6, 6), (1, 4, 6, 6))


def test_a_constant_by_which_values_are_multiplied_from_the_left_is_of_the_same_type() -> None:
    source = product(RNG.integers(-64, 65, (6, 6)).astype(np.int8), np.int8(3))
    assert types(source) == {"UINT8"}
    operators_of(source, FED, rounds=False)


def test_bytes_with_a_sign_beside_such_without_stay() -> None:
    source = product(RNG.integers(0, 250, (6, 6)).astype(np.uint8), np.uint8(99))
    assert types(source) == {"INT8"}
    operators_of(source, FED, rounds=False)


def test_many_that_stay_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    held: Held = {"s": np.float32(0.1), "z": np.int8(1)}
    nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], [f"q{i}"]) for i in range(60)]
    nodes += [
        helper.make_node("Concat", ["q0", *[f"q{i}" for i in range(1, 60)]], ["all"], axis=0),
        helper.make_node("Cast", ["all"], ["y"], to=TensorProto.FLOAT),
    ]
    looked = list[object]()
    made = unsigned_values._made
    monkeypatch.setattr(unsigned_values, "_made", lambda region, node: looked.append(node) or made(region, node))
    assert types(model(nodes, held, (1, 4, 6, 6), (60, 4, 6, 6))) == {"INT8"}
    assert len(looked) < 300


def test_bytes_that_are_computed_with_otherwise_stay() -> None:
    between = (
        helper.make_node("Cast", ["d_quantized"], ["e"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["d", "e"], ["y"]),
    )
    assert types(convolution(between=between)) == {"UINT8", "INT8"}


def test_where_products_of_bytes_have_no_room_only_small_weights_are_multiplied_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(of_bytes, "adds_up_products", lambda: False)
    assert types(convolution(largest=64)) == {"UINT8"}
    assert types(convolution(largest=120)) == {"INT8"}


def test_constants_that_are_added_are_of_the_same_type() -> None:
    held: Held = {}
    data = RNG.integers(-64, 65, (1, 4, 1, 1)).astype(np.int8)
    nodes = [*pair("x", "a", held, 0.05, np.int8(7)), weights("w", held, data, np.int8(9))]
    nodes += [helper.make_node("Add", ["a", "w"], ["s"]), *pair("s", "y", held, 0.05, np.int8(1))]
    source = model(nodes, held, (1, 4, 6, 6), (1, 4, 6, 6))
    operators_of(source, FED, rounds=False)
    made = ir.to_proto(understand(load(source)).model)
    assert {n.attribute[0].t.data_type for n in made.graph.node if n.op_type == "Constant"} == {TensorProto.UINT8}


@pytest.mark.skipif(not of_bytes.adds_up_products(), reason="no instructions for products of bytes")
def test_convolutions_of_bytes_with_a_sign_are_faster_so() -> None:
    held: Held = {}
    nodes = pair("x", "v0", held, 0.05, np.int8(-128))
    for i in range(4):
        data = RNG.integers(-99, 99, (64, 64, 3, 3)).astype(np.int8)
        nodes += [weights(f"w{i}", held, data, np.int8(0))]
        nodes += [helper.make_node("Conv", [f"v{i}", f"w{i}"], [f"c{i}"], pads=[1] * 4)]
        nodes += pair(f"c{i}", f"b{i}", held, 0.2, np.int8(5))
        nodes += [helper.make_node("Add", [f"b{i}", f"v{i}"], [f"s{i}"])]
        nodes += pair(f"s{i}", f"v{i + 1}", held, 0.3, np.int8(2))
    nodes += [helper.make_node("Relu", ["v4"], ["y"])]
    source = model(nodes, held, (1, 64, 16, 16), (1, 64, 16, 16))
    assert gain(source, {"x": RNG.standard_normal((1, 64, 16, 16)).astype(np.float32)}) > 1.5
