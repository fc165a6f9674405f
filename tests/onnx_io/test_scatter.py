"""What is put into a box of another tensor is read as what stands around it beside it, and all else stays opaque."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from superopt.arithmetic.floats import FLOAT
from superopt.evaluate import evaluate
from superopt.onnx_io import load, rewritten, understand

SIZES = (3, 4, 5)


def scattering(indices: np.ndarray, **attributes: str) -> onnx.ModelProto:
    """A model that puts `updates` into `x` at constant indices."""
    updates = [*indices.shape[:-1], *SIZES[indices.shape[-1] :]]
    node = helper.make_node("ScatterND", ["x", "i", "updates"], ["y"], **attributes)
    inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", SIZES), ("updates", updates))]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, SIZES)]
    graph = helper.make_graph([node], "scatter", inputs, outputs, [numpy_helper.from_array(indices, "i")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def box(starts: tuple[int, ...], ends: tuple[int, ...]) -> np.ndarray:
    """The places of a box, each a vector along the last axis."""
    ranges = [np.arange(a, b) for a, b in zip(starts, ends, strict=True)]
    return np.stack(np.meshgrid(*ranges, indexing="ij"), axis=-1).astype(np.int64)


@st.composite
def boxes(draw: st.DrawFn) -> np.ndarray:
    axes = range(draw(st.integers(1, len(SIZES))))
    starts = tuple(draw(st.integers(0, SIZES[a] - 1)) for a in axes)
    ends = tuple(draw(st.integers(starts[a] + 1, SIZES[a])) for a in axes)
    indices = box(starts, ends)
    return indices - np.asarray(SIZES[: len(starts)]) if draw(st.booleans()) else indices


def random(model: onnx.ModelProto) -> Mapping[str, np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = {i.name: [d.dim_value for d in i.type.tensor_type.shape.dim] for i in model.graph.input}
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def assert_read(model: onnx.ModelProto) -> None:
    """That what a model puts is understood, and written otherwise the same."""
    program, feeds = understand(load(model)), random(model)
    (step,) = program.steps
    assert not step.reason
    values = {program.values[name]: array.astype(np.float64) for name, array in feeds.items()}
    (expected,) = ReferenceEvaluator(model).run(None, dict(feeds))
    np.testing.assert_array_equal(evaluate(step.terms[0], FLOAT, values), expected)
    again = ir.to_proto(rewritten(program, {"y": step.terms[0]}, {}))
    assert not {"ScatterND", "ScatterElements"}.intersection(node.op_type for node in again.graph.node)
    np.testing.assert_array_equal(ReferenceEvaluator(again).run(None, dict(feeds))[0], expected)


@given(boxes())
def test_a_box_is_read_as_what_onnx_says(indices: np.ndarray) -> None:
    """Negative places are counted from the end."""
    assert_read(scattering(indices))


def along(places: np.ndarray, axis: int, **attributes: str) -> onnx.ModelProto:
    """A model that puts `updates` into `x` at constant places along an axis, the same wherever along others."""
    sizes = [len(places) if a == axis else d for a, d in enumerate(SIZES)]
    indices = np.broadcast_to(places.reshape([-1 if a == axis else 1 for a in range(len(SIZES))]), sizes)
    node = helper.make_node("ScatterElements", ["x", "i", "updates"], ["y"], axis=axis, **attributes)
    inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", SIZES), ("updates", sizes))]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, SIZES)]
    held = [numpy_helper.from_array(np.ascontiguousarray(indices), "i")]
    graph = helper.make_graph([node], "scatter", inputs, outputs, held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


@st.composite
def runs(draw: st.DrawFn) -> tuple[np.ndarray, int]:
    axis = draw(st.integers(0, len(SIZES) - 1))
    start = draw(st.integers(0, SIZES[axis] - 1))
    places = np.arange(start, draw(st.integers(start + 1, SIZES[axis])))
    return places - SIZES[axis] * draw(st.booleans()), axis


@given(runs())
def test_places_along_an_axis_are_read_as_what_onnx_says(run: tuple[np.ndarray, int]) -> None:
    assert_read(along(*run))


NO_RUN = {
    "places that are no neighbours": (np.array([0, 2]), {}),
    "places in another order": (np.array([1, 0]), {}),
    "one place twice": (np.array([1, 1]), {}),
    "the last place twice": (np.array([-1, -1]), {}),
    "what is multiplied": (np.array([0]), {"reduction": "mul"}),
}


OPAQUE = {
    "places that are no neighbours": (np.array([[0], [2]]), {}),
    "places in another order": (np.array([[1], [0]]), {}),
    "one place twice": (np.array([[1], [1]]), {}),
    "a corner without its middle": (np.array([[0, 0], [0, 1], [1, 0]]), {}),
    "places outside": (np.array([[3]]), {}),
    "what is added": (np.array([[0]]), {"reduction": "add"}),
}


@pytest.mark.parametrize("name", OPAQUE)
def test_what_fills_no_box_or_is_added_stays_opaque(name: str) -> None:
    indices, attributes = OPAQUE[name]
    (step,) = understand(load(scattering(indices.astype(np.int64), **attributes))).steps
    assert step.reason
    assert not step.terms


@pytest.mark.parametrize(("places", "attributes"), NO_RUN.values(), ids=NO_RUN)
def test_other_places_along_an_axis_are_opaque(places: np.ndarray, attributes: Mapping[str, str]) -> None:
    (step,) = understand(load(along(places, 1, **attributes))).steps
    assert step.reason


def test_places_that_differ_along_another_axis_are_opaque() -> None:
    model = along(np.array([1]), 1)
    places = np.ones((3, 1, 5), np.int64)
    places[0, 0, 0] = 2
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(places, "i"))
    (step,) = understand(load(model)).steps
    assert "one after the other" in step.reason
