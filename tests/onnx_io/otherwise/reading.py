"""How a model is read, and that it computes the same then."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort

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


def gain(source: onnx.ModelProto, feeds: Mapping[str, Array]) -> float:
    """How many times as fast a model is as it is read, without a search: by the medians of runs that take turns."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    made = ir.to_proto(understand(load(source)).model)
    sessions = [ort.InferenceSession(m.SerializeToString(), options) for m in (source, made)]
    taken: tuple[list[float], list[float]] = ([], [])
    for _ in range(200):
        for session, times in zip(sessions, taken, strict=True):
            begin = time.perf_counter()
            session.run(None, dict(feeds))
            times.append(time.perf_counter() - begin)
    before, after = map(statistics.median, taken)
    return before / after
