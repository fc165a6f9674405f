"""The values in 64 bits that candidates are compared with are what the original computes."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

from superopt.arithmetic.carrier import Array
from superopt.onnx_io import load, understand
from superopt.search.accepting import reference
from superopt.search.accepting.fed import DRAWS
from superopt.search.accepting.reference import reference_of
from tests.models import model, normalized
from tests.onnx_io.networks import run


@pytest.mark.parametrize(("batch", "side"), [(1, 28), ("N", "side")])
def test_the_reference_is_what_the_runtime_computes(batch: int | str, side: int | str) -> None:
    given = normalized(batch=batch, size=side)
    evaluated = reference_of(understand(load(given)))
    assert evaluated is not None
    seen = 0
    for size in {draw.size for draw in DRAWS} if batch == "N" else {1}:
        shape = (size, 3, 28, 28) if batch == "N" else (1, 3, 28, 28)
        feeds = {"image": np.random.default_rng(size).standard_normal(shape).astype(np.float32)}
        (exact,), (found,) = evaluated(feeds), run(given, feeds)
        assert isinstance(exact, np.ndarray)
        assert np.abs(exact - found).max() <= 1e-5 * np.abs(found).max()
        seen += 1
    assert seen


def test_an_opaque_node_that_rounds_nothing_is_run_for_the_reference() -> None:
    """A comparison of integers is not understood."""
    ends = [("i", TensorProto.INT32, [4]), ("x", TensorProto.FLOAT, [4]), ("y", TensorProto.FLOAT, [4])]
    nodes = [
        helper.make_node("Equal", ["i", "two"], ["e"]),
        helper.make_node("Cast", ["e"], ["c"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["c", "x"], ["y"]),
    ]
    program = understand(load(model(nodes, ends[:2], ends[2:], {"two": np.int32([2])})))
    assert [step.node.op_type for step in program.steps if not step.terms] == ["Equal"]
    evaluated = reference_of(program)
    assert evaluated is not None
    (found,) = evaluated({"i": np.int32([1, 2, 3, 2]), "x": np.float32([0.1, 0.2, 0.3, 0.4])})
    np.testing.assert_array_equal(found, np.float64(np.float32([0.0, 0.2, 0.0, 0.4])))


def test_there_is_no_reference_beside_an_opaque_node_that_computes() -> None:
    ends = [(n, TensorProto.FLOAT, [2, 2]) for n in "xy"]
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Asinh", ["r"], ["y"])]
    assert reference_of(understand(load(model(nodes, ends[:1], ends[1:])))) is None


def test_each_value_that_is_shown_is_kept_when_nothing_more_is_made_of_it() -> None:
    """Together they may take more than all that is alive at once."""
    ends = [(n, TensorProto.FLOAT, [2]) for n in "xy"]
    nodes = [helper.make_node(op, [given], [name]) for op, given, name in (("Exp", "x", "a"), ("Neg", "a", "b"))]
    nodes += [helper.make_node("Add", ["a", "b"], ["c"]), helper.make_node("Cos", ["c"], ["y"])]
    evaluated = reference_of(understand(load(model(nodes, ends[:1], ends[1:]))), ["y", "b", "a"])
    assert evaluated is not None
    kept = list[Array]()

    def keep(array: Array) -> Array:
        kept.append(array)
        return array

    x = np.float32([0.1, 0.2])
    y, b, a = evaluated({"x": x}, keep=keep)
    assert [id(v) for v in kept] == [id(v) for v in (a, b, y)]
    np.testing.assert_array_equal(a, np.exp(np.float64(x)))


@pytest.mark.parametrize("pool", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize("laid_out", [1, 2000, 10**6])
def test_pools_of_large_maps_are_evaluated_some_channels_after_the_others(
    monkeypatch: pytest.MonkeyPatch, pool: str, laid_out: int
) -> None:
    monkeypatch.setattr(reference, "LAID_OUT", laid_out)
    ends = [("x", TensorProto.FLOAT, [2, 5, 9, 9]), ("y", TensorProto.FLOAT, [2, 5, 5, 5])]
    node = helper.make_node(pool, ["x"], ["y"], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    given = model([node], ends[:1], ends[1:], {})
    of, evaluated, blocks = reference_of(understand(load(given))), reference.evaluate_all, []
    monkeypatch.setattr(reference, "evaluate_all", lambda *asked: blocks.append(asked) or evaluated(*asked))
    assert of is not None
    feeds = {"x": np.random.default_rng(0).standard_normal((2, 5, 9, 9)).astype(np.float32)}
    (exact,), (found,) = of(feeds), run(given, feeds)
    np.testing.assert_allclose(exact, found, rtol=1e-6, atol=1e-6)
    assert len(blocks) == 1 + {1: 5, 2000: 5, 10**6: 1}[laid_out]
