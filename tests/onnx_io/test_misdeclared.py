"""Sizes that are declared of values which have others."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper
from onnx.shape_inference import InferenceError

from superopt.errors import InvalidModel
from superopt.onnx_io import facts, load
from tests.onnx_io.models import model
from tests.onnx_io.networks import run


def _declaring(inner: list[int], output: list[int]) -> onnx.ModelProto:
    """A model whose inner value and output are of sizes (2, 3), and are declared of these."""
    source = model("g (float[2,3] x) => (float y) { a = Neg(x) y = Relu(a) }")
    source.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, output))
    source.graph.value_info.append(helper.make_tensor_value_info("a", TensorProto.FLOAT, inner))
    return source


@pytest.mark.parametrize("wrong", [[2, 4], [6], [2, 3, 1]])
def test_an_inner_value_declared_of_sizes_that_it_has_not_is_told_and_declared_no_more(wrong: list[int]) -> None:
    for found in (load(_declaring(wrong, [2, 3])), load(ir.from_proto(_declaring(wrong, [2, 3])))):
        assert facts(found).misdeclared == ["a"]
        assert all(v.shape is None for node in found.graph for v in node.outputs if v.name == "a")
        onnx.checker.check_model(ir.to_proto(found), full_check=True)
    assert facts(load(_declaring([2, 3], [2, 3]))).misdeclared == []


def test_an_output_declared_of_sizes_that_it_has_not_is_refused_by_name() -> None:
    with pytest.raises(InvalidModel, match=r"output 'y' is declared of sizes \(2, 4\), and has \(2, 3\)"):
        load(_declaring([2, 3], [2, 4]))


@pytest.mark.parametrize("wrong", [[2, 4], [], [2, 3, 1]])
def test_what_a_branch_declares_of_its_values_is_left_as_it_is(wrong: list[int]) -> None:
    """onnxruntime goes by the operators, and so do exporters that count a scalar as a vector of one."""
    declared = helper.make_tensor_value_info("b", TensorProto.FLOAT, wrong)
    then, otherwise = (
        helper.make_graph([helper.make_node(op, ["x"], ["b"])], op, [], [declared]) for op in ("Neg", "Abs")
    )
    source = model("g (float[2,3] x, bool c) => (float[2,3] y) { y = Relu(x) }")
    source.graph.node[0].CopyFrom(
        helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=otherwise),
    )
    with pytest.raises(InferenceError):
        onnx.checker.check_model(source, full_check=True)
    found = load(source)
    assert facts(found).misdeclared == []
    inner = ir.to_proto(found).graph.node[0].attribute[0].g.output[0]
    assert [d.dim_value for d in inner.type.tensor_type.shape.dim] == wrong
    x = np.float32([[-1, 2, 3], [4, -5, 6]])
    for c, expected in ((True, -x), (False, np.abs(x))):
        (y,) = run(ir.to_proto(found), {"x": x, "c": np.array(c)})
        np.testing.assert_array_equal(y, expected)
