"""Nodes of ONNX's RotaryEmbedding are read in all their forms but that of pairs, and mean what the reference says."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from superopt.arithmetic.floats import FLOAT
from superopt.evaluate import evaluate
from superopt.onnx_io import load, understand
from tests.models import model

FORMS: dict[str, tuple[tuple[int, ...], tuple[int, ...], bool, dict[str, Any]]] = {
    "four axes": ((2, 3, 5, 8), (2, 5, 4), False, {}),
    "positions": ((2, 3, 5, 8), (9, 4), True, {}),
    "heads side by side": ((2, 5, 24), (2, 5, 4), False, {"num_heads": 3}),
    "heads side by side at positions": ((2, 5, 24), (9, 4), True, {"num_heads": 3}),
    "a part of each row": ((2, 3, 5, 8), (2, 5, 2), False, {"rotary_embedding_dim": 4}),
    "all of each row": ((2, 3, 5, 8), (2, 5, 4), False, {"rotary_embedding_dim": 8}),
    "a part of each row side by side": ((2, 5, 24), (9, 2), True, {"rotary_embedding_dim": 4, "num_heads": 3}),
}


def node(name: str, **more: int) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    shape, table, looked_up, attributes = FORMS[name]
    rng = np.random.default_rng(0)
    feed = {n: rng.standard_normal(s).astype(np.float32) for n, s in (("x", shape), ("c", table), ("s", table))}
    if looked_up:
        feed["at"] = rng.integers(0, table[0], (2, 5))
    inputs = [(n, TensorProto.INT64 if n == "at" else TensorProto.FLOAT, a.shape) for n, a in feed.items()]
    made = helper.make_node("RotaryEmbedding", [*feed], ["y"], **attributes, **more)
    return model([made], inputs, [("y", TensorProto.FLOAT, shape)], opset=23, ir=11), feed


@pytest.mark.parametrize("name", FORMS)
def test_what_is_read_of_a_node_means_what_the_reference_says(name: str) -> None:
    whole, feed = node(name)
    program = understand(load(whole))
    (step,) = program.steps
    (term,) = step.terms
    value = evaluate(term, FLOAT, {program.values[n]: a for n, a in feed.items()})
    (expected,) = ReferenceEvaluator(whole).run(None, feed)
    np.testing.assert_allclose(value, np.asarray(expected), rtol=1e-6, atol=1e-6)


def test_pairs_that_stand_beside_each_other_are_not_read() -> None:
    (step,) = understand(load(node("four axes", interleaved=1)[0])).steps
    assert step.terms == ()
    assert "pairs" in step.reason
