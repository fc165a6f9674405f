"""Sizes of pools that are rounded up are what onnxruntime makes of them, which leaves windows behind the image out."""

from __future__ import annotations

from itertools import product

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from superopt.errors import InvalidModel
from superopt.onnx_io import load, understand
from tests.onnx_io.networks import run

SAYS = [said for said in product((4, 5), (1, 2, 3), (1, 2, 3), (0, 1), (0, 1)) if max(said[3:]) < said[1]]
"""The size of an image, of a window, how far apart windows are, and what pads the image."""


def _pool(op: str, opset: int, said: tuple[int, ...], declared: int | str = "n") -> onnx.ModelProto:
    size, kernel, stride, *pads = said
    node = helper.make_node(op, ["x"], ["y"], kernel_shape=[kernel], strides=[stride], pads=pads, ceil_mode=1)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, size])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2, declared])
    graph = helper.make_graph([node], "g", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


@pytest.mark.parametrize(("op", "opset"), [("MaxPool", 10), ("AveragePool", 19), ("LpPool", 18), ("MaxPool", 22)])
def test_no_window_is_counted_that_starts_behind_the_image(op: str, opset: int) -> None:
    for said in SAYS:
        source = _pool(op, opset, said)
        (given,) = run(source, {"x": np.ones((1, 2, said[0]), np.float32)})
        program = understand(load(source))
        term = program.term(program.model.graph.outputs[0])
        assert term is not None, said
        assert term.shape == given.shape, said


def test_a_model_that_declares_the_right_size_is_taken_and_one_that_declares_another_refused() -> None:
    said = (5, 1, 3, 0, 0)
    assert load(_pool("MaxPool", 11, said, 2)).graph.outputs[0].shape == (1, 2, 2)
    with pytest.raises(InvalidModel, match=r"declared of sizes \(1, 2, 3\), and has \(1, 2, 2\)"):
        load(_pool("MaxPool", 11, said, 3))
