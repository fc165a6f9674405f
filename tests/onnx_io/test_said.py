"""What nodes say is read whatever form it has: as attributes, as constants with and without axes, in old opsets."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper

from superopt.errors import InvalidModel
from superopt.onnx_io import load, understand
from superopt.onnx_io.constants import MOST
from superopt.onnx_io.said import concat_axis, listed, number
from tests.onnx_io.models import model

SAID = {
    "an attribute": ("y = ReduceMean<axes = [1, 2]>(x)", 17, [1, 2]),
    "a constant": ("a = Constant<value_ints = [1, 2]>() y = ReduceMean(x, a)", 18, [1, 2]),
    "a number without axes": ("a = Constant<value_int = 1>() y = ReduceMean(x, a)", 18, [1]),
    "nothing": ("y = ReduceMean(x)", 18, []),
    "what is computed": ("s = Shape(x) a = Size(s) y = ReduceMean(x, a)", 18, None),
}


@pytest.mark.parametrize(("text", "opset", "wanted"), SAID.values(), ids=SAID)
def test_axes_are_read_as_they_are_given(text: str, opset: int, wanted: list[int] | None) -> None:
    nodes = list(load(model(f"g (float[2, 3, 4] x) => (float[a, b, c] y) {{ {text} }}", opset)).graph)
    assert listed(nodes[-1], "axes") == wanted


def test_the_name_of_a_type_is_no_number() -> None:
    (cast,) = load(model('g (int64[2] x) => (float[2] y) { y = Cast<to = "FLOAT">(x) }', 5)).graph
    assert number(cast, "to", 7) == 7


@pytest.mark.parametrize(("text", "opset", "axis"), [("", 3, 1), ("<axis = 0>", 3, 0), ("<axis = -1>", 17, -1)])
def test_what_is_joined_without_an_axis_is_along_the_second(text: str, opset: int, axis: int) -> None:
    (join,) = load(model(f"g (float[n, 2] x) => (float[m, k] y) {{ y = Concat{text}(x, x) }}", opset)).graph
    assert concat_axis(join) == axis


UNFORESEEN = {
    "sizes that are cast to a type by name": ('s = Shape(x) c = Cast<to = "FLOAT">(s) y = Relu(c)', 5),
    "a join without an axis": ("y = Concat(x, x)", 3),
}


@pytest.mark.parametrize(("text", "opset"), UNFORESEEN.values(), ids=UNFORESEEN)
def test_models_of_old_opsets_are_read(text: str, opset: int) -> None:
    assert understand(load(model(f"g (float[n, 2] x) => (float[m] y) {{ {text} }}", opset))).values["x"].shape[1] == 2


def test_strings_that_a_node_reshapes_are_computed_ahead() -> None:
    given = model("g (string[n, 1] x) => (bool[n, 3] y) { w = Reshape(words, shape) y = Equal(x, w) }", 19)
    given.graph.initializer.append(
        helper.make_tensor("words", onnx.TensorProto.STRING, [3], [b"red", b"green", b"\xff"])
    )
    given.graph.initializer.append(onnx.numpy_helper.from_array(np.array([1, 3]), "shape"))
    program = understand(load(given))
    assert program.data("w").tolist() == [["red", "green", "\udcff"]]


def test_of_more_numbers_than_memory_holds_nothing_is_computed_ahead() -> None:
    text = f"s = Constant<value_ints = [{2 * MOST}]>() f = ConstantOfShape(s) m = ReduceMax(f) y = Add(x, m)"
    program = understand(load(model(f"g (float[2] x) => (float[2] y) {{ {text} }}")))
    with pytest.raises(InvalidModel, match="ReduceMax"):
        program.data("m")


def test_parts_that_a_function_is_told_are_read() -> None:
    halves = helper.make_node("Split", ["x"], ["a", "b"], axis=1)
    told = onnx.AttributeProto(name="num_outputs", ref_attr_name="k", type=onnx.AttributeProto.INT)
    halves.attribute.append(told)
    nodes = [halves, helper.make_node("Add", ["a", "b"], ["y"])]
    opsets = [helper.make_opsetid("", 18)]
    given = model("g (float[n, 8] x) => (float[n, 4] y) { y = custom.Sum<k = 2>(x) }", 18)
    given.functions.append(helper.make_function("custom", "Sum", ["x"], ["y"], nodes, opsets, ["k"]))
    assert understand(load(given)).summary.opaque == {}


def test_splits_of_other_domains_give_what_they_say() -> None:
    nodes = [helper.make_node(op, ["x"], [name]) for op, name in (("Relu", "a"), ("Neg", "b"))]
    opsets = [helper.make_opsetid("", 18)]
    given = model("g (float[n] x) => (float[n] y) { y, z = custom.Split<num_outputs = 1>(x) }", 18)
    given.functions.append(helper.make_function("custom", "Split", ["x"], ["a", "b"], nodes, opsets, ["num_outputs"]))
    assert understand(load(given)).summary.opaque == {}
