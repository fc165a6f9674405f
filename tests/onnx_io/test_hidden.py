"""What takes only its type from the input is a constant, whatever a runtime knows; and it becomes a weight."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper

from superopt.onnx_io import check, hidden_constants, load, rewritten, to_proto, understand
from tests.models import model, unsimplified
from tests.onnx_io.networks import run


def test_what_takes_only_its_type_from_an_input_is_constant() -> None:
    found = hidden_constants(understand(load(unsimplified(2))))
    assert set(found) == {"like0", "bias0", "like1", "bias1"}
    assert all(term.constant for term in found.values())


def test_what_depends_on_an_input_is_none() -> None:
    nodes = [helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Expand", ["one", "s"], ["y"])]
    ends = [(n, TensorProto.FLOAT, ["n", 3]) for n in "xy"]
    assert hidden_constants(understand(load(model(nodes, ends[:1], ends[1:], {"one": np.ones(1, np.float32)})))) == {}


def test_hidden_constants_become_weights_and_nothing_else_changes() -> None:
    source = unsimplified(2)
    program = understand(load(source))
    made = rewritten(program, hidden_constants(program), {})
    check(made)
    assert [n.op_type for n in made.graph] == ["Conv", "BatchNormalization", "Relu"] * 2
    feed = {"x": np.random.default_rng(0).standard_normal((1, 16, 8, 8)).astype(np.float32)}
    np.testing.assert_array_equal(run(to_proto(made), feed)[0], run(source, feed)[0])
