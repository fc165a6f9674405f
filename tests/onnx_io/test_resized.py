"""Images that are resized, as exporters write it: read as terms, and the same when written anew."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from onnx import numpy_helper

from superopt.arithmetic.floats import FLOAT
from superopt.evaluate import evaluate
from superopt.onnx_io import load, rewritten, understand
from superopt.operators.nearest import Nearest
from superopt.term import variable
from tests.onnx_io.models import model, terms
from tests.onnx_io.networks import assert_close, run


def test_a_linear_resize_as_torch_writes_it_is_understood() -> None:
    source = model("""g (float[n, 3, 4, 4] x) => (float[n, 3, 8, 9] y) <int64[2] to = {8, 9}, int64[2] some = {0, 2}>
      { s = Shape(x) f = Slice(s, zero, two) t = Concat<axis = 0>(f, to)
        y = Resize<mode = "linear", coordinate_transformation_mode = "pytorch_half_pixel", nearest_mode = "floor",
                   cubic_coeff_a = -0.75>(x, , , t) }""")
    for label, value in (("zero", 0), ("two", 2)):
        source.graph.initializer.append(numpy_helper.from_array(np.array([value]), label))
    program = understand(load(source))
    assert program.summary.opaque == {}
    made = rewritten(program, terms(program), {})
    feed = {"x": np.random.default_rng(0).standard_normal((2, 3, 4, 4)).astype(np.float32)}
    assert_close(run(ir.to_proto(made), feed), run(source, feed))


def test_a_resize_to_the_nearest_by_a_fraction_is_understood_of_any_number_of_images() -> None:
    source = model("""g (float[n, 3, 4, 4] x) => (float[n, 3, 6, 7] y) <float[4] by = {1.0, 1.0, 1.5, 1.75}>
      { y = Resize<coordinate_transformation_mode = "half_pixel", nearest_mode = "floor">(x, , by) }""")
    program = understand(load(source))
    assert program.summary.opaque == {}
    made = ir.to_proto(rewritten(program, terms(program), {}))
    for count in (1, 3):
        feed = {"x": np.random.default_rng(0).standard_normal((count, 3, 4, 4)).astype(np.float32)}
        assert_close(run(made, feed), run(source, feed))


@pytest.mark.parametrize(("size", "to"), [(3, 7), (5, 12), (7, 9)])
def test_a_resize_to_the_nearest_with_places_behind_the_last_element_is_understood(size: int, to: int) -> None:
    source = model(f"""g (float[1, 2, {size}, 4] x) => (float[1, 2, {to}, 4] y) <int64[4] to = {{1, 2, {to}, 4}}>
      {{ y = Resize<mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor">
          (x, , , to) }}""")
    program = understand(load(source))
    assert program.summary.opaque == {}
    made = ir.to_proto(rewritten(program, terms(program), {}))
    feed = {"x": np.random.default_rng(0).standard_normal((1, 2, size, 4)).astype(np.float32)}
    np.testing.assert_array_equal(run(made, feed)[0], run(source, feed)[0])


@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
def test_one_place_that_is_resized_is_repeated(mode: str) -> None:
    """As the pooled branch of DeepLab's heads is, with all that torch writes."""
    source = model(f"""g (float[n, 3, 1, 1] x) => (float[n, 3, 5, 4] y)
      <int64[2] to = {{5, 4}}, int64[1] zero = {{0}}, int64[1] two = {{2}}>
      {{ s = Shape(x) f = Slice(s, zero, two) t = Concat<axis = 0>(f, to)
         y = Resize<mode = "{mode}", nearest_mode = "floor", cubic_coeff_a = -0.75>(x, , , t) }}""")
    program = understand(load(source))
    assert [step.terms[0].operator.name for step in program.steps] == ["expand"]
    made = ir.to_proto(rewritten(program, terms(program), {}))
    feed = {"x": np.random.default_rng(0).standard_normal((2, 3, 1, 1)).astype(np.float32)}
    assert_close(run(made, feed), run(source, feed))


@pytest.mark.parametrize(("size", "to"), [(5, 9), (7, 3), (29, 58), (49, 119), (93, 377)])
def test_a_resize_to_the_nearest_of_open_sizes_is_understood_and_takes_the_places_that_the_runtime_does(
    size: int, to: int
) -> None:
    """Also where 32 bits round a whole place down."""
    source = model("""g (float[n, 3, h, w] x, float[n, 3, i, j] like) => (float[n, 3, i, j] y) <int64[1] zero = {0},
      int64[1] two = {2}, int64[1] four = {4}> {
        s = Shape(x) f = Slice(s, zero, two) l = Shape(like) g = Slice(l, two, four) t = Concat<axis = 0>(f, g)
        y = Resize<mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor">(x, , , t)
      }""")
    program = understand(load(source))
    assert program.summary.opaque == {}
    (term,) = (step.terms[0] for step in program.steps)
    assert term.operator.name == "nearest"
    rng = np.random.default_rng(0)
    x, like = (rng.standard_normal((2, 3, 4, d)).astype(np.float32) for d in (size, to))
    expected = run(source, {"x": x, "like": like})
    assert_close(run(ir.to_proto(rewritten(program, terms(program), {})), {"x": x, "like": like}), expected)
    concrete = variable("x", x.shape)
    np.testing.assert_array_equal(evaluate(Nearest((4, to))(concrete), FLOAT, {concrete: x}), expected[0])
