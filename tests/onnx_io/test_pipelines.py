"""Operators of the domain `ai.onnx.ml`, read: they mean what onnxruntime computes, and are written as they were."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from superopt.arithmetic.carrier import Array
from superopt.demands import assuming
from superopt.onnx_io import check, load, rewritten, understand
from superopt.onnx_io.program import Program
from superopt.operators import Declared
from superopt.search.accepting.reference import reference_of
from tests.onnx_io.models import terms
from tests.onnx_io.networks import run

DOMAIN = "ai.onnx.ml"
RNG = np.random.default_rng(0)
W, B, OFFSET, SCALE = (RNG.uniform(0.5, 2, n).astype(np.float32).tolist() for n in (12, 3, 4, 4))
LINEAR: dict[str, Any] = {"coefficients": W, "intercepts": B}
SINGLE: dict[str, Any] = {"coefficients": W[:4], "intercepts": B[:1]}
CLASSES = LINEAR | {"classlabels_ints": [0, 1, 2]}
WORDS = LINEAR | {"classlabels_strings": ["a", "b", "c"]}

UNDERSTOOD: dict[str, tuple[str, dict[str, Any]]] = {
    "a scaler": ("Scaler", {"offset": OFFSET, "scale": SCALE}),
    "a scaler with one number for all columns": ("Scaler", {"offset": [2.0], "scale": [0.5]}),
    "an imputer": ("Imputer", {"imputed_value_floats": OFFSET, "replaced_value_float": math.nan}),
    "an imputer with one value": ("Imputer", {"imputed_value_floats": [7.0], "replaced_value_float": math.nan}),
    "an imputer of a number": ("Imputer", {"imputed_value_floats": OFFSET, "replaced_value_float": -1.5}),
    "an imputer of zeros, by default": ("Imputer", {"imputed_value_floats": OFFSET}),
    "a normalizer by L1": ("Normalizer", {"norm": "L1"}),
    "a normalizer by L2": ("Normalizer", {"norm": "L2"}),
    "a regressor of one target": ("LinearRegressor", SINGLE),
    "a regressor of three": ("LinearRegressor", LINEAR | {"targets": 3}),
    "a regressor without intercepts": ("LinearRegressor", {"coefficients": W, "targets": 3}),
    "a regressor with a softmax": ("LinearRegressor", LINEAR | {"targets": 3, "post_transform": "SOFTMAX"}),
    "a logistic regressor": ("LinearRegressor", LINEAR | {"targets": 3, "post_transform": "LOGISTIC"}),
    "a classifier": ("LinearClassifier", CLASSES),
    "a classifier with a softmax": ("LinearClassifier", CLASSES | {"post_transform": "SOFTMAX", "multi_class": 1}),
    "a logistic classifier": ("LinearClassifier", CLASSES | {"post_transform": "LOGISTIC"}),
    "a classifier of labels in no order": ("LinearClassifier", LINEAR | {"classlabels_ints": [7, -3, 7]}),
}

OPAQUE: dict[str, tuple[str, dict[str, Any], str]] = {
    "a norm that runtime and reference disagree on": ("Normalizer", {}, "the norm MAX"),
    "a scaler without an offset": ("Scaler", {"scale": SCALE}, "attribute offset holds 0 numbers, 4 are expected"),
    "a scaler of other columns": ("Scaler", {"scale": SCALE, "offset": B}, "attribute offset holds 3 numbers"),
    "values that are integers": ("Imputer", {"imputed_value_int64s": [1]}, "imputed_value_floats holds 0 numbers"),
    "too few intercepts": ("LinearRegressor", LINEAR | {"intercepts": B[:1], "targets": 3}, "holds 1 numbers"),
    "a softmax of one score": ("LinearRegressor", SINGLE | {"post_transform": "SOFTMAX"}, "SOFTMAX of 1 scores"),
    "a logistic of one score": ("LinearRegressor", SINGLE | {"post_transform": "LOGISTIC"}, "LOGISTIC of 1 scores"),
    "a probit": ("LinearClassifier", CLASSES | {"post_transform": "PROBIT"}, "post_transform PROBIT"),
    "two classes by one row": (
        "LinearClassifier",
        SINGLE | {"classlabels_ints": [0, 1]},
        "1 intercepts for 2 classes",
    ),
    "labels of text that are used": ("LinearClassifier", WORDS, "output 'label' is used and not declared"),
    "an operator that is not declared": ("Binarizer", {}, "operator Binarizer of the domain ai.onnx.ml"),
}  # fmt: skip


def model(op_type: str, given: dict[str, Any], element: int = TensorProto.FLOAT, own: bool = True) -> onnx.ModelProto:
    """One node over x; `own` says that ONNX's own domain is imported too."""
    scores = helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, None])
    kind = TensorProto.STRING if "classlabels_strings" in given else TensorProto.INT64
    labels = [helper.make_tensor_value_info("label", kind, ["N"])] * (op_type == "LinearClassifier")
    outputs = [*labels, scores]
    node = helper.make_node(op_type, ["x"], [o.name for o in outputs], name="node", domain=DOMAIN, **given)
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", element, ["N", 4])], outputs)
    opsets = [helper.make_opsetid(DOMAIN, 3), *([helper.make_opsetid("", 17)] * own)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def data(seed: int = 1) -> Array:
    """Rows of both signs; one of zeros, one with what is not a number, one with the number that is replaced."""
    x = np.random.default_rng(seed).standard_normal((9, 4)).astype(np.float32) * 10
    x[2], x[3, 1], x[5, 2] = 0.0, np.nan, -1.5
    return x


def written_anew(program: Program) -> onnx.ModelProto:
    """The model with every understood value computed by nodes that are written for its term."""
    made = rewritten(program, terms(program), {})
    check(made)
    return ir.to_proto(made)


def assert_same(found: Sequence[Array | None], expected: Sequence[Array]) -> None:
    for f, e in zip(found, expected, strict=True):
        assert f is not None
        np.testing.assert_allclose(f, e, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", UNDERSTOOD)
def test_it_means_what_the_runtime_computes(name: str) -> None:
    given = model(*UNDERSTOOD[name])
    program = understand(load(given))
    assert program.summary.opaque == {}
    reference, feed = reference_of(program), {"x": data()}
    assert reference is not None
    assert_same(reference(feed), run(given, feed))
    assert_same(run(written_anew(program), feed), run(given, feed))


@pytest.mark.parametrize("name", [n for n, (op_type, _) in UNDERSTOOD.items() if not op_type.startswith("Linear")])
def test_it_is_written_as_the_node_that_it_was_and_unfolded_computes_the_same(name: str) -> None:
    given = model(*UNDERSTOOD[name])
    program = understand(load(given))
    (node,) = written_anew(program).graph.node
    assert (node.domain, node.op_type, list(node.input)) == (DOMAIN, given.graph.node[0].op_type, ["x"])
    term = terms(program)["y"]
    assert isinstance(term.operator, Declared)
    with assuming():  # that there are rows
        meaning = term.operator.definition(*term.inputs)
    assert meaning is not None
    unfolded = rewritten(program, {"y": meaning}, {})
    check(unfolded)
    assert {n.domain for n in unfolded.graph} == {""}
    assert_same(run(ir.to_proto(unfolded), {"x": data()}), run(given, {"x": data()}))


@pytest.mark.parametrize("name", OPAQUE)
def test_what_is_not_covered_is_opaque_for_a_reason(name: str) -> None:
    op_type, attributes, reason = OPAQUE[name]
    (step,) = understand(load(model(op_type, attributes))).steps
    assert reason in step.reason


@pytest.mark.parametrize("name", [n for n, (op_type, _) in UNDERSTOOD.items() if op_type != "Imputer"])
@pytest.mark.parametrize("declared", [True, False])
def test_over_64_bit_floats_it_is_opaque(name: str, *, declared: bool) -> None:
    """Its result is of 32 bits, also where nobody says so."""
    given = model(*UNDERSTOOD[name], element=TensorProto.DOUBLE)
    if not declared:
        given.graph.node.append(helper.make_node("Shape", ["y"], ["rows"]))
        given.graph.output.append(helper.make_tensor_value_info("rows", TensorProto.INT64, [2]))
        given.graph.output.remove(next(o for o in given.graph.output if o.name == "y"))
    step = understand(load(given)).steps[0]
    assert "a matrix of 32-bit floats is declared" in step.reason


def test_labels_of_text_that_nothing_reads_leave_the_scores_understood() -> None:
    given = model("LinearClassifier", WORDS)
    del given.graph.output[0]
    program = understand(load(given))
    assert program.summary.opaque == {}
    assert_same(run(written_anew(program), {"x": data()}), run(given, {"x": data()}))


def test_a_name_that_a_weight_would_have_may_be_taken() -> None:
    given = model("Scaler", {"offset": OFFSET, "scale": SCALE})
    given.graph.node.append(helper.make_node("Relu", ["x"], ["y.offset"]))
    given.graph.output.append(helper.make_tensor_value_info("y.offset", TensorProto.FLOAT, ["N", 4]))
    program = understand(load(given))
    assert_same(run(written_anew(program), {"x": data()}), run(given, {"x": data()}))


def test_a_model_of_that_domain_alone_imports_onnx_own_when_it_is_unfolded() -> None:
    given = model("LinearRegressor", LINEAR | {"targets": 3}, own=False)
    program = understand(load(given))
    made = written_anew(program)
    assert {o.domain: o.version for o in made.opset_import} == {DOMAIN: 3, "": 15}
    assert_same(run(made, {"x": data()}), run(given, {"x": data()}))


def choosing(columns: Array, element: int = TensorProto.FLOAT) -> onnx.ModelProto:
    """A node that takes some of four columns."""
    node = helper.make_node("ArrayFeatureExtractor", ["x", "columns"], ["y"], domain=DOMAIN)
    ends = [helper.make_tensor_value_info(n, element, ["N", c]) for n, c in (("x", 4), ("y", None))]
    graph = helper.make_graph([node], "g", ends[:1], ends[1:], [onnx.numpy_helper.from_array(columns, "columns")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid(DOMAIN, 1), helper.make_opsetid("", 17)])


@pytest.mark.parametrize("element", [TensorProto.FLOAT, TensorProto.INT64])
@pytest.mark.parametrize("columns", [[[1, 2, 3]], [[3, 0, 0]], [2]], ids=["one after the other", "in no order", "one"])
def test_columns_that_are_chosen_are_those_that_the_runtime_takes(columns: list[Any], element: int) -> None:
    given = choosing(np.array(columns), element)
    program = understand(load(given))
    assert program.summary.opaque == {}
    feed = {"x": data()[[0, 1, 4]].astype(helper.tensor_dtype_to_np_dtype(element))}
    assert_same(run(written_anew(program), feed), run(given, feed))


@pytest.mark.parametrize("columns", [[[-1]], [[4]]], ids=["negative", "too large"])
def test_columns_that_are_not_there_are_not_understood(columns: list[Any]) -> None:
    (step,) = understand(load(choosing(np.array(columns)))).steps
    assert step.reason
