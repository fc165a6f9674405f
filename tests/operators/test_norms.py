"""Norms are read as the operators that they are, and written as these again."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper

from superopt.onnx_io import load, op_types, understand
from superopt.operators.norms import LayerNorm
from superopt.search.accepting.reference import reference_of
from superopt.term import Graph
from tests.onnx_io.networks import run


def test_a_layer_norm_without_bias_is_one_whose_bias_is_nothing() -> None:
    """As torch writes those of ModernBERT."""
    value = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", [2, 5, 8]), ("y", [2, 5, 8]))]
    scale = helper.make_tensor("scale", TensorProto.FLOAT, [8], range(8))
    node = helper.make_node("LayerNormalization", ["x", "scale"], ["y"], epsilon=1e-4)
    graph = helper.make_graph([node], "norm", value[:1], value[1:], [scale])
    given = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    program = understand(load(given))
    (step,) = program.steps
    (term,) = step.terms
    assert term.operator == LayerNorm(2, onnx.helper.make_attribute("e", 1e-4).f)
    assert op_types(Graph(term.inputs[:1], (term,)), 17) == ["LayerNormalization"]
    reference = reference_of(program)
    assert reference is not None
    x = np.random.default_rng(0).standard_normal((2, 5, 8)).astype(np.float32)
    (found,) = reference({"x": x})
    np.testing.assert_allclose(found, run(given, {"x": x})[0], rtol=1e-5)
