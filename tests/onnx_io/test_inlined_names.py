"""Names that onnxruntime gives values of functions that it inlines are given up, as it gives them again."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort
from onnx import TensorProto, helper

from superopt.onnx_io import load, understand

NAME = "_inlfunc_HardSwish_HS_X"


def named(shown: bool = False) -> onnx.ModelProto:
    """A model that has such a name, as one that onnxruntime wrote."""
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, (4,)) for n in ("x", "y", NAME)]
    nodes = [
        helper.make_node("HardSigmoid", ["x"], [NAME], alpha=1 / 6),
        helper.make_node("Mul", ["x", NAME], ["y"]),
    ]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1 : 3 if shown else 2])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def test_inner_values_have_other_names_with_which_the_model_runs() -> None:
    made = ir.to_proto(understand(load(named())).model)
    made.graph.node.append(helper.make_node("HardSwish", ["y"], ["z"]))
    made.graph.output.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, (4,)))
    session = ort.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    np.testing.assert_array_equal(session.run(None, {"x": np.full(4, 6, np.float32)})[1], np.full(4, 6, np.float32))


def test_outputs_keep_their_names() -> None:
    made = ir.to_proto(understand(load(named(shown=True))).model)
    assert [v.name for v in made.graph.output] == ["y", NAME]
