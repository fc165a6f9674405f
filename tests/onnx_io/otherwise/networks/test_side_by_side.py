"""Layers of networks of one make are computed side by side in one matrix."""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from superopt.onnx_io import load, understand
from tests.onnx_io.networks import run
from tests.onnx_io.otherwise.networks.test_heads import networks, two_layers
from tests.onnx_io.otherwise.reading import operators_of

X = np.random.default_rng(0).standard_normal((32, 6)).astype(np.float32)


def expert(i: int) -> str:
    """What a gate weighs: a number of each row for each network."""
    return f"""f{i} = Constant<value_ints = [{i}]>() t{i} = Constant<value_ints = [{i + 1}]>()
        g{i} = Slice(gates, f{i}, t{i}, one) h{i} = Gemm(x, w{i}, b{i}) r{i} = Relu(h{i}) m{i} = MatMul(r{i}, v{i})
        a{i} = Add(two, m{i}) p{i} = Mul(g{i}, a{i})"""


def unweighed(i: int) -> str:
    return f"h{i} = Gemm(x, w{i}, b{i}) r{i} = Relu(h{i}) m{i} = MatMul(r{i}, v{i}) p{i} = Add(two, m{i})"


def scaled(i: int) -> str:
    return f"""h{i} = MatMul(x, w{i}) n{i} = Sub(half, h{i}) c{i} = Mul(n{i}, b{i}) e{i} = Sigmoid(c{i})
        a{i} = Mul(c{i}, e{i}) p{i} = Gemm<transB = 1>(a{i}, same)"""


def outputs(rows: str = "32", opset: int = 17) -> onnx.ModelProto:
    """Of which each network gives one."""
    made = networks(two_layers, "y = Identity(x)", 4, rows=rows, opset=opset)
    for i in range(4):
        made.graph.output.append(onnx.helper.make_tensor_value_info(f"p{i}", onnx.TensorProto.FLOAT, ["a", 2]))
    return made


SUM = "y1 = Add(p0, p1) y2 = Add(y1, p2) y = Add(y2, p3)"
GATES = """all = Constant<value_ints = [0, 1, 2, 3]>() some = Gather<axis = 1>(x, all) gates = Softmax<axis = 1>(some)
    one = Constant<value_ints = [1]>() two = Constant<value_floats = [2.0, 1.0]>() """
STACK = """new = Constant<value_ints = [{axis}]>() e0 = Unsqueeze(p0, new) e1 = Unsqueeze(p1, new)
    e2 = Unsqueeze(p2, new) e3 = Unsqueeze(p3, new) stack = Concat<axis = {axis}>(e0, e1, e2, e3) """
EINSUM = 'y = Einsum<equation = "be,bed->bd">(gates, stack)'
FRONT = 'y = Einsum<equation = "ebd, be -> bd">(stack, gates)'
WEIGHED = """minus = Constant<value_ints = [-1]>() column = Unsqueeze(gates, minus) weighed = Mul(stack, column)
    y = ReduceSum<keepdims = 0>(weighed, new)"""
MEANS = "y = ReduceMean<axes = [1], keepdims = 0>(stack)"
MEAN = "y = ReduceMean<axes = [0], keepdims = 0>(stack)"
SAME = "same = Constant<value = float[2, 3] {1, 2, 3, 4, 5, 6}>() half = Constant<value_float = 0.5>() "
CASES = {
    "of one value": networks(two_layers, rows="32"),
    "of as many rows as a symbol stands for": networks(two_layers, rows="n"),
    "added up": networks(two_layers, SUM, 4, rows="32"),
    "that gates weigh": networks(expert, SUM, 4, GATES, rows="32"),
    "that gates weigh in as many rows as a symbol stands for": networks(expert, SUM, 4, GATES, rows="n"),
    "a stack of which gates weigh": networks(unweighed, STACK.format(axis=1) + EINSUM, 4, GATES, rows="32"),
    "a stack of which gates weigh in front": networks(unweighed, STACK.format(axis=0) + FRONT, 4, GATES, rows="n"),
    "a stack of which is multiplied and summed": networks(
        unweighed, STACK.format(axis=1) + WEIGHED, 4, GATES, rows="32"
    ),
    "of which the mean is taken": networks(unweighed, STACK.format(axis=0) + MEAN, 4, GATES, rows="32"),
    "that gates weigh of which the mean is taken": networks(expert, STACK.format(axis=1) + MEANS, 4, GATES, rows="32"),
    "with a layer that all share": networks(scaled, more=SAME, rows="32"),
    "each of which gives an output": outputs(),
    "each of which gives an output of older opsets": outputs(opset=11),
    "each of which gives an output of open length": outputs("n"),
    "before a number more": networks(two_layers, "y = Concat<axis = -1>(p0, p1, p2, p3, p4, p5, x)", rows="32"),
}


@pytest.mark.parametrize("given", CASES.values(), ids=CASES)
def test_layers_are_computed_side_by_side(given: onnx.ModelProto) -> None:
    counts = Counter(operators_of(given, {"x": X}))
    assert counts["MatMul"] <= 3
    assert counts["Gemm"] == 0
    assert counts["Relu"] + counts["Sigmoid"] == 1


def overflowing(i: int) -> str:
    return two_layers(i).replace("Relu", "Exp")


STAYS = {
    "what may be infinite in one of which": networks(overflowing, rows="32"),
    "joined along rows": networks(two_layers, "y = Concat<axis = 0>(p0, p1, p2)", 3, rows="32"),
    "the weighed sum of one of which is read": networks(
        expert, f"{SUM.replace('y =', 'y3 =')} z = Exp(a1) y = Concat<axis = 0>(y3, z)", 4, GATES, rows="32"
    ),
    "of which there are two": networks(two_layers, count=2, rows="32"),
}


@pytest.mark.parametrize("given", STAYS.values(), ids=STAYS)
def test_others_stay(given: onnx.ModelProto) -> None:
    assert not understand(load(given)).otherwise


def test_what_is_infinite_in_one_is_none_in_others() -> None:
    given = networks(lambda i: two_layers(i).replace("Relu", "LeakyRelu"))
    for held in given.graph.initializer:
        if held.name == "b1":
            held.CopyFrom(onnx.numpy_helper.from_array(np.array([1, -np.inf, 0], np.float32), "b1"))
    assert np.isinf(run(given, {"x": X[:2]})[0]).sum() == 4
    operators_of(given, {"x": X[:2]})  # which also compares where numbers are infinite


def test_many_numbers_are_not_put_beside_zeros() -> None:
    made = ir.to_proto(understand(load(given := networks(two_layers, rows="4096"))).model)
    assert made == ir.to_proto(load(given))
    assert len(run(made, {"x": np.ones((4096, 6), np.float32)})) == 1
