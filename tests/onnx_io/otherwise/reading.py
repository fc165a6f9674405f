"""How a model is read, and that it computes the same then."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
import onnx_ir as ir

from superopt.onnx_io import load, understand
from tests.onnx_io.networks import Array, run


def operators_of(source: onnx.ModelProto, feeds: Mapping[str, Array], rounds: bool = True) -> list[str]:
    """The operators of a model as it is read, without constants, which computes the same under the same interface; but
    for rounding, if it `rounds` otherwise.
    """
    onnx.checker.check_model(source, full_check=True)
    made = ir.to_proto(understand(load(source)).model)
    onnx.checker.check_model(made, full_check=True)
    assert (made.graph.input, made.graph.output) == (source.graph.input, source.graph.output)
    relative, absolute = (1e-4, 1e-5) if rounds else (0.0, 0.0)
    for found, wanted in zip(run(made, feeds), run(source, feeds), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=relative, atol=absolute, strict=True)
    return [node.op_type for node in made.graph.node if node.op_type != "Constant"]
