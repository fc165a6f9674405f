"""Weights that are bytes without a sign have one, and stand for the same numbers."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper, numpy_helper

from superopt.onnx_io import load, understand
from superopt.onnx_io.otherwise.quantized import bytes as of_bytes
from tests.onnx_io.otherwise.quantized.quantized_nodes import Held, model, pair, weights
from tests.onnx_io.otherwise.reading import operators_of

RNG = np.random.default_rng(0)
FED = {"x": RNG.standard_normal((5, 8)).astype(np.float32)}


def layer(least: int = 70, quantized: bool = True, zero: int = 127) -> onnx.ModelProto:
    """A product of values that are quantized, or not, with weights of bytes without a sign."""
    held: Held = {}
    data = RNG.integers(least, 256 - least, (8, 8)).astype(np.uint8)
    before = pair("x", "a", held, 0.02, np.uint8(120)) if quantized else [helper.make_node("Relu", ["x"], ["a"])]
    nodes = [*before, weights("w", held, data, np.uint8(zero)), helper.make_node("MatMul", ["a", "w"], ["m"])]
    nodes += [*pair("m", "b", held, 0.05, np.uint8(100)), helper.make_node("Relu", ["b"], ["y"])]
    return model(nodes, held, (5, 8), (5, 8))


def held_types(source: onnx.ModelProto) -> set[str]:
    """The types of the matrices that a model holds as it is read."""
    made = ir.to_proto(understand(load(source)).model)
    held = [n.attribute[0].t for n in made.graph.node if n.op_type == "Constant"] + list(made.graph.initializer)
    return {TensorProto.DataType.Name(t.data_type) for t in held if len(t.dims) == 2}


def test_weights_have_a_sign_and_all_is_the_same() -> None:
    source = layer()
    assert held_types(source) == {"INT8"}
    assert operators_of(source, FED, rounds=False) == [n.op_type for n in source.graph.node]


def test_a_zero_point_that_is_left_out_is_told_of_bytes_with_a_sign() -> None:
    source = layer(zero=0)
    del source.graph.node[2].input[2]
    assert held_types(source) == {"INT8"}
    operators_of(source, FED, rounds=False)


def test_a_zero_point_that_is_left_out_is_told_for_each_scale() -> None:
    source = layer(zero=0)
    del source.graph.node[2].input[2]
    for held in source.graph.initializer:
        if held.name == "w_scale":
            held.CopyFrom(numpy_helper.from_array(np.full(8, 0.01, np.float32), "w_scale"))
    assert held_types(source) == {"INT8"}
    operators_of(source, FED, rounds=False)


def test_operators_of_others_stay_as_they_are() -> None:
    held: Held = {"q": np.zeros((5, 8), np.uint8), "w": RNG.integers(70, 190, (8, 4)).astype(np.uint8)}
    nodes = [
        helper.make_node("MatMulInteger", ["q", "w"], ["m"], domain="others"),
        helper.make_node("Cast", ["m"], ["y"], to=TensorProto.FLOAT),
    ]
    source = model(nodes, held, (5, 8), (5, 4))
    source.opset_import.append(helper.make_opsetid("others", 1))
    assert held_types(source) == {"UINT8"}


def test_weights_of_products_of_integers_have_a_sign() -> None:
    held: Held = {"w": RNG.integers(70, 190, (8, 4)).astype(np.uint8), "z": np.uint8(99)}
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "scale", "zero"]),
        helper.make_node("MatMulInteger", ["q", "w", "zero", "z"], ["m"]),
        helper.make_node("Cast", ["m"], ["c"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["c", "scale"], ["y"]),
    ]
    source = model(nodes, held, (5, 8), (5, 4))
    assert held_types(source) == {"INT8"}
    operators_of(source, FED, rounds=False)


def test_where_products_of_bytes_have_no_room_only_small_weights_have_a_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_bytes, "adds_up_products", lambda: False)
    assert held_types(layer()) == {"INT8"}
    assert held_types(layer(least=0)) == {"UINT8"}
