"""Softmax along an inner axis, in steps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import superopt
from superopt.api import Options
from superopt.arithmetic.floats import FLOAT
from superopt.cost.ort import OnnxRuntime
from superopt.evaluate import evaluate
from superopt.onnx_io import save
from superopt.operators.definitions.shares import across
from superopt.operators.normalize import Softmax
from superopt.term import variable
from tests.models import model, weight


@pytest.mark.parametrize("rank", [1, 2, 3, 4])
def test_softmax_is_its_steps_along_every_axis_but_the_last(rank: int) -> None:
    x = variable("x", range(2, 2 + rank))
    value = np.random.default_rng(0).normal(0, 300, range(2, 2 + rank))  # exponentials of these overflow
    for axis in range(rank):
        made = across(Softmax(axis), x)
        assert (made is None) == (axis == rank - 1)
        if made is not None:
            found, wanted = (evaluate(t, FLOAT, {x: value}) for t in (made, Softmax(axis)(x)))
            np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_classes_of_a_segmentation_are_found_faster_in_steps_and_are_the_same(options: Options, tmp_path: Path) -> None:
    """Also where they are infinite or no numbers."""
    nodes = [helper.make_node("Conv", ["x", "k"], ["c"]), helper.make_node("Softmax", ["c"], ["y"], axis=1)]
    ends = [("x", TensorProto.FLOAT, [1, 3, 96, 96]), ("y", TensorProto.FLOAT, [1, 21, 96, 96])]
    given = model(nodes, ends[:1], ends[1:], {"k": weight(21, 3, 1, 1)})
    result = superopt.optimize(given, options)
    assert result.report.outcome == "faster"
    assert "definition of softmax across" in [r.name for r in result.report.rewrites]
    onnx.save(given, tmp_path / "a.onnx")
    save(result.model, tmp_path / "b.onnx")
    runtime, x = OnnxRuntime(), np.random.default_rng(0).standard_normal((1, 3, 96, 96)).astype(np.float32)
    x[0, 0, 0, 0], x[0, 1, 1, 1], x[0, 2, 2, 2] = np.inf, -np.inf, np.nan
    (before,), (after,) = (runtime.run(runtime.session(tmp_path / f"{n}.onnx"), {"x": x}) for n in "ab")
    assert np.isnan(before).any()
    np.testing.assert_allclose(after, before, rtol=1e-4, atol=1e-7)
