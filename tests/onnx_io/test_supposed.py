"""Maps that are resized and joined to others are of their sizes, where the model fails at all others."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from superopt.onnx_io import load, rewritten, understand
from superopt.onnx_io.supposed import Joins
from tests.onnx_io.models import model, terms
from tests.onnx_io.networks import assert_close, run

NEAREST = 'mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"'
LINEAR = 'mode = "linear", coordinate_transformation_mode = "half_pixel"'
OF_TENSORFLOW = 'mode = "nearest", coordinate_transformation_mode = "half_pixel"'
SMALLER = "MaxPool<kernel_shape = [2, 2], strides = [2, 2]>"
SHORTER = "MaxPool<kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]>"


def graph(inside: str, inputs: str = "float[n, 3, h, w] x") -> str:
    return f"g ({inputs}) => (float[n, C, H, W] y) <float[4] by = {{1, 1, 2, 2}}> {{ {inside} }}"


def up(name: str, mode: str = NEAREST) -> str:
    return f"Resize<{mode}>({name}, , by)"


JOINED = {
    "to the nearest": (graph(f"s = {SMALLER}(x) u = {up('s')} y = Concat<axis = 1>(x, u)"), [8, 2], [7]),
    "as TensorFlow has it": (
        graph(f"s = {SMALLER}(x) u = {up('s', OF_TENSORFLOW)} y = Concat<axis = 1>(u, x)"), [8], [7]
    ),
    "linearly": (graph(f"s = {SHORTER}(x) u = {up('s', LINEAR)} y = Concat<axis = -3>(x, u)"), [8, 2], [7]),
    "by maps that are made in two steps": (
        graph(f"a = {SHORTER}(x) b = {SHORTER}(a) u = {up('b')} c = Concat<axis = 1>(u, a) v = {up('c')} "
              "d = Concat<axis = 1>(v, x) y = Relu(d)"),
        [8, 12],
        [10, 7],
    ),
    "to what has sizes of its own": (
        graph(f"u = {up('x')} y = Concat<axis = 1>(z, u)", "float[n, 3, h, w] x, float[n, 3, p, q] z"),
        [],
        [],
    ),
}  # fmt: skip
"""Models, heights and widths at which they run, and some at which they do not."""


def maps(size: int, width: int | None = None) -> np.ndarray:
    return np.random.default_rng(size).standard_normal((2, 3, size, width or size)).astype(np.float32)


@pytest.mark.parametrize(("text", "sizes", "failing"), JOINED.values(), ids=JOINED)
def test_what_is_resized_has_the_sizes_of_what_it_is_joined_to(text: str, sizes: list[int], failing: list[int]) -> None:
    program = understand(load(model(text)))
    assert program.summary.opaque == {}
    made = ir.to_proto(rewritten(program, terms(program), {}))
    feeds = [{"x": maps(size, 2 * size)} for size in sizes] or [{"x": maps(4, 5), "z": maps(8, 10)}]
    for given in feeds:
        assert_close(run(made, given), run(model(text), given))
    for size in failing:
        with pytest.raises(Exception, match="Concat"):
            run(model(text), {"x": maps(size)})


OPEN = {
    "added, so that one of the sizes may be 1": (
        graph(f"s = {SHORTER}(x) u = {up('s')} y = Add(x, u)"),
        "Add",
        [1, 4],
    ),
    "not what is resized": (
        graph(f"s = {SMALLER}(x) r = {SHORTER}(x) y = Concat<axis = 1>(r, s)"),
        "Concat",
        [2, 4],
    ),
    "of a number of samples that the other need not have": (
        graph(f"u = {up('x')} y = Concat<axis = 1>(z, u)", "float[n, 3, h, w] x, float[m, 3, p, q] z"),
        "Concat",
        [4],
    ),
}


@pytest.mark.parametrize(("text", "operator", "sizes"), OPEN.values(), ids=OPEN)
def test_sizes_that_need_not_be_equal_stay_apart(text: str, operator: str, sizes: list[int]) -> None:
    program = understand(load(model(text)))
    assert list(program.summary.opaque) == [operator]
    made = ir.to_proto(rewritten(program, terms(program), {}))
    for size in sizes:
        given = {i.name: maps(size if i.name == "x" else 2 * size) for i in model(text).graph.input}
        assert_close(run(made, given), run(model(text), given))


def test_a_join_of_numbers_without_axes_has_no_shape() -> None:
    """ONNX's check refuses it only where it knows that they have none."""
    node = ir.Node("", "Concat", [ir.Value(name="x"), ir.Value(name="y")], [ir.AttrInt64("axis", 0)])
    assert Joins({node}).join(node, [(), ()], set()) is None
