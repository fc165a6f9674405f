"""Pipelines of classical models become one product of matrices, by rules and definitions that come with superopt."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import NodeProto, TensorProto, helper

from superopt.cost.analytic import AnalyticCost
from superopt.onnx_io import check, load, rewritten, understand
from superopt.rules.format import load_rules
from superopt.search.cutting.pieces import cut_into_pieces
from superopt.search.replay import placement
from superopt.search.rewriting.matching import Matching
from superopt.search.rewriting.rewrites import rewrites_of
from superopt.search.strategies.backtrack import backtrack
from superopt.search.strategies.found import Limits
from superopt.shipped import shipped_rules
from tests.models import model, weight
from tests.onnx_io.networks import run

COLUMNS, CLASSES, ROWS = 64, 10, 256


def node(op_type: str, x: str, *outputs: str, **attributes: object) -> NodeProto:
    return helper.make_node(op_type, [x], list(outputs), domain="ai.onnx.ml", **attributes)


def pipeline(batch: int | str) -> onnx.ModelProto:
    """What skl2onnx makes of a StandardScaler and a LogisticRegression of ten classes."""
    scaler = {"offset": weight(COLUMNS).tolist(), "scale": (np.abs(weight(COLUMNS, seed=1)) + 0.5).tolist()}
    linear = {"coefficients": weight(CLASSES, COLUMNS).ravel().tolist(), "intercepts": weight(CLASSES).tolist()}
    labels = {"classlabels_ints": list(range(CLASSES)), "post_transform": "SOFTMAX", "multi_class": 1}
    nodes = [
        node("Scaler", "x", "scaled", **scaler),
        node("LinearClassifier", "scaled", "label", "probabilities", **linear, **labels),
    ]
    outputs = [("label", TensorProto.INT64, [batch]), ("probabilities", TensorProto.FLOAT, [batch, CLASSES])]
    return model(nodes, [("x", TensorProto.FLOAT, [batch, COLUMNS])], outputs)


@pytest.mark.parametrize("batch", [ROWS, "N"])
def test_a_scaler_and_a_linear_classifier_become_one_product(batch: int | str) -> None:
    given = pipeline(batch)
    program = understand(load(given))
    assert program.summary.opaque == {}
    (piece,) = cut_into_pieces(program)
    rules = [rule for path in shipped_rules() for rule in load_rules(path).rules]
    matching = Matching(rewrites_of(rules, ["scaler", "gemm"]))
    found = backtrack(piece.canonical, matching, AnalyticCost(sizes={"N": ROWS}), Limits(expanded=12)).best[0]
    new = placement(piece, found.graph.outputs)
    made = rewritten(program, new.new, new.origins)
    check(made)
    after = ir.to_proto(made)
    operators = [n.op_type for n in after.graph.node]
    assert sorted(operators) == ["Add", "ArgMax", "MatMul", "Softmax"]
    assert sum(np.prod(w.dims) for w in after.graph.initializer) == COLUMNS * CLASSES + CLASSES
    assert after.opset_import == given.opset_import
    feed = {"x": np.random.default_rng(0).standard_normal((ROWS, COLUMNS)).astype(np.float32)}
    (labels, scores), (expected_labels, expected) = run(after, feed), run(given, feed)
    assert (labels == expected_labels).all()
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-6)
