"""Models do not have the names that onnxruntime gives what it inlines, when they are read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import helper

from superopt.onnx_io import load, understand
from tests.onnx_io.networks import run
from tests.onnx_io.otherwise.quantized.quantized_nodes import model

FED = {"x": np.linspace(-4, 4, 8, dtype=np.float32).reshape(2, 4)}


def named(names: Sequence[str]) -> onnx.ModelProto:
    """A model with these names for what it computes on the way and for a constant."""
    inner, other, constant = names
    nodes = [
        helper.make_node("Neg", ["x"], [inner]),
        helper.make_node("Mul", [inner, constant], [other]),
        helper.make_node("Add", [other, inner], ["_inlfunc_y"]),
    ]
    nodes.insert(2, helper.make_node("Sub", [other, "c"], ["less"]))
    nodes[3].input[0] = "less"
    source = model(nodes, {constant: np.float32(3), "c": np.float32(2)}, (2, 4), (2, 4))
    source.graph.output[0].name = "_inlfunc_y"
    return source


@pytest.mark.parametrize(
    "names",
    [
        ("_inlfunc_HardSwish_HS_X", "b", "_inlfunc_c"),
        ("_inlfunc_a", "a", "a_2"),
        ("_inlfunc__inlfunc_a", "_inlfunc_a", "a"),
        ("_inlfunc_", "inlfunc", "d"),
    ],
    ids=["as it gives them", "taken ones", "inlined twice", "nothing else"],
)
def test_inner_names_are_others_and_the_interface_stays(names: tuple[str, str, str]) -> None:
    source = named(names)
    made = ir.to_proto(understand(load(source)).model)
    onnx.checker.check_model(made, full_check=True)
    given = {name for node in made.graph.node for name in node.output} | {i.name for i in made.graph.initializer}
    assert [name for name in given if name.startswith("_inlfunc_")] == ["_inlfunc_y"]
    assert (made.graph.input, made.graph.output) == (source.graph.input, source.graph.output)
    np.testing.assert_array_equal(run(made, FED), run(source, FED))
