"""Recurrent networks without gates are computed step by step where their states are large."""

from __future__ import annotations

from itertools import product

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from superopt.onnx_io.otherwise.series.unrolled import BOUNDS, FEWEST_NUMBERS, MOST_STEPS
from tests.onnx_io.otherwise.reading import operators_of

STEPS, READ, WIDTH = 4, 3, 16
ROWS = FEWEST_NUMBERS // WIDTH
INPUTS = ["x", "w", "r", "b", "", "h"]


def network(
    direction: str = "forward",
    bounds: str = "",
    inputs: str = "xwrbh",
    outputs: str = "yl",
    rows: int | str = ROWS,
    steps: int = STEPS,
    **said: float | list[float],
) -> onnx.ModelProto:
    """A network that is given these of the inputs and gives these of the outputs; what it says besides."""
    rng, ways = np.random.default_rng(0), 2 if direction == "bidirectional" else 1
    shapes = {"w": (ways, WIDTH, READ), "r": (ways, WIDTH, WIDTH), "b": (ways, 2 * WIDTH)}
    held = [numpy_helper.from_array(0.3 * rng.standard_normal(s, np.float32), n) for n, s in shapes.items()]
    held.append(numpy_helper.from_array(np.array([steps] * ROWS, np.int32), "l_"))
    given = [n if n in inputs else "" for n in INPUTS]
    given[4] = "l_" if "l" in inputs else ""
    activations = {"activations": bounds.split() * ways} if bounds else {}
    node = helper.make_node(
        "RNN", given, ["y_" if "y" in outputs else "", "l" if "l" in outputs else ""],
        direction=direction, hidden_size=WIDTH, **activations, **said,
    )  # fmt: skip
    made = {"y": (steps, ways, rows, WIDTH), "l": (ways, rows, WIDTH)}
    read = {"x": (steps, rows, READ), "h": (ways, rows, WIDTH)}
    nodes = [node, *([helper.make_node("Neg", ["y_"], ["y"])] if "y" in outputs else [])]
    infos = [
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in some.items() if n in names]
        for some, names in ((read, inputs), (made, outputs))
    ]
    graph = helper.make_graph(nodes, "g", *infos, [t for t in held if t.name in given])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def read(source: onnx.ModelProto) -> list[str]:
    """The operators of a model as it is read, which computes the same."""
    rng = np.random.default_rng(1)
    sizes = {i.name: [d.dim_value or ROWS for d in i.type.tensor_type.shape.dim] for i in source.graph.input}
    return operators_of(source, {n: rng.standard_normal(s, np.float32) for n, s in sizes.items()})


@pytest.mark.parametrize(
    ("direction", "inputs", "outputs"),
    list(product(("forward", "reverse", "bidirectional"), ("xwr", "xwrb", "xwrbh"), ("y", "l", "yl"))),
)
def test_each_step_is_a_product_and_its_bound(direction: str, inputs: str, outputs: str) -> None:
    operators, ways = read(network(direction, inputs=inputs, outputs=outputs)), 1 + (direction == "bidirectional")
    assert "RNN" not in operators
    assert operators.count("Tanh") == ways * STEPS
    assert operators.count("MatMul") == ways * (1 + STEPS - ("h" not in inputs))


@pytest.mark.parametrize("bound", ["Relu", "Sigmoid"])
def test_other_bounds_are_operators_of_the_same_name(bound: str) -> None:
    assert read(network(bounds=bound, rows=BOUNDS[bound] // WIDTH)).count(bound) == STEPS


LEFT = {
    "small states": network(rows=ROWS - 1),
    "states that are rectified, and not large": network(bounds="Relu", rows=BOUNDS["Relu"] // WIDTH - 1),
    "any number of rows": network(rows="N"),
    "many steps": network(steps=MOST_STEPS + 1),
    "steps of their own for each row": network(inputs="xwrbhl"),
    "states that are clipped": network(clip=0.5),
    "other bounds": network(bounds="Softsign"),
    "bounds with a number": network(bounds="LeakyRelu", activation_alpha=[0.2]),
}


@pytest.mark.parametrize("source", LEFT.values(), ids=LEFT)
def test_others_stay(source: onnx.ModelProto) -> None:
    assert "RNN" in read(source)


def test_weights_that_are_computed_stay() -> None:
    source = network(inputs="xwr")
    (source.graph.node[0].input[1], weight) = ("v", source.graph.input.add())
    weight.CopyFrom(helper.make_tensor_value_info("w_", TensorProto.FLOAT, (1, WIDTH, READ)))
    source.graph.node.insert(0, helper.make_node("Exp", ["w_"], ["v"]))
    del source.graph.initializer[0]
    assert "RNN" in read(source)
