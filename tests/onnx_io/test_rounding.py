"""What rounds by a large number is carried through: in the real numbers it does nothing."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from superopt.onnx_io import Program, load, understand
from superopt.operators.activations import LeakyRelu
from superopt.operators.norms import LayerNorm
from tests.models import model, weight

SHAPE = [2, 8]


def moved(
    first: str, second: str, one: float, other: float, dtype: type = np.float32, as_nodes: bool = False
) -> Program:
    """A number is added or taken away, and then another one, between two relus; the numbers are weights, or nodes that
    stand where they are read.
    """
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node(first, ["a", "one"], ["b"]),
        helper.make_node(second, ["b", "other"], ["c"]),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    of = TensorProto.FLOAT if dtype is np.float32 else TensorProto.DOUBLE
    ends = [(name, of, SHAPE) for name in "xy"]
    numbers = {"one": dtype(one), "other": dtype(other)}
    if as_nodes:
        for name, value in numbers.items():
            constant = helper.make_node("Constant", [], [name], value=numpy_helper.from_array(np.asarray(value)))
            nodes.insert(next(i for i, node in enumerate(nodes) if name in node.input), constant)
    return understand(load(model(nodes, ends[:1], ends[1:], {} if as_nodes else numbers)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("first", "second", "sign"), [("Add", "Sub", 1), ("Sub", "Add", 1), ("Add", "Add", -1), ("Sub", "Sub", -1)]
)
@pytest.mark.parametrize("by", [1.5 * 2**23, -1e8])
@pytest.mark.parametrize("as_nodes", [False, True])
def test_a_large_number_that_is_added_and_taken_away_is_left(
    first: str, second: str, sign: int, by: float, dtype: type, as_nodes: bool
) -> None:
    program = moved(first, second, by, sign * by, dtype, as_nodes)
    assert [bool(step.terms) for step in program.steps] == [True, False, False, True]
    assert {step.reason for step in program.steps if not step.terms} == {
        "it rounds: a large number is added and taken away again"
    }


@pytest.mark.parametrize(
    ("first", "second", "one", "other"),
    [
        ("Add", "Sub", 1.0, 1.0),
        ("Add", "Sub", 1e8, 1e7),
        ("Add", "Add", 1e8, 1e8),
        ("Sub", "Sub", 1e8, 1e8),
        ("Add", "Sub", 1e8, -1e8),
    ],
)
def test_other_numbers_are_moved(first: str, second: str, one: float, other: float) -> None:
    assert all(step.terms for step in moved(first, second, one, other).steps)


def test_attributes_that_are_left_out_are_of_32_bits_as_those_that_are_not() -> None:
    """A model of 64 bits shows the difference."""
    nodes = [
        helper.make_node("LeakyRelu", ["x"], ["a"]),
        helper.make_node("LayerNormalization", ["a", "scale", "shift"], ["y"]),
    ]
    ends = [(name, TensorProto.DOUBLE, SHAPE) for name in "xy"]
    weights = {name: weight(8, seed=i).astype(np.float64) for i, name in enumerate(("scale", "shift"))}
    program = understand(load(model(nodes, ends[:1], ends[1:], weights)))
    bent, normal = (step.terms[0].operator for step in program.steps)
    assert isinstance(bent, LeakyRelu)
    assert isinstance(normal, LayerNorm)
    assert (bent.alpha, normal.epsilon) == (float(np.float32(0.01)), float(np.float32(1e-5)))
