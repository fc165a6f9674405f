"""Nodes that no output needs are not in the model that is searched, unless they may do more than compute."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from superopt.onnx_io import load, understand
from tests.onnx_io.models import model
from tests.onnx_io.networks import run

X = np.random.default_rng(0).standard_normal((1, 4)).astype(np.float32)

RUN = {
    "one": "d = Exp(x) y = Relu(x)",
    "a chain": "d = Exp(x) e = Neg(d) y = Relu(x)",
    "of what is needed": "h = Exp(x) d = Neg(h) y = Relu(h)",
    "one that gives two values": "d, e = Split<axis = 1, num_outputs = 2>(x) y = Relu(x)",
    "before what is needed": "k = Constant<value_floats = [2.0]>() d = Mul(x, k) y = Mul(d, k) f = Neg(y)",
    "one with a subgraph": """c = Constant<value = bool {1}>() y = Relu(x)
        d = If (c) <then_branch = p () => (float[1, 4] a) { a = Neg(x) },
                    else_branch = q () => (float[1, 4] b) { b = Exp(x) }>""",
}
NOT_RUN = {
    "of constants": "k = Constant<value_floats = [2.0]>() d = Neg(k) y = Relu(x)",
    "of sizes": "s = Shape(x) d = Neg(s) y = Relu(x)",
}
KEPT = {
    "all are needed": "h = Exp(x) y = Relu(h)",
    "one output of two": "y, d = Split<axis = 1, num_outputs = 2>(x)",
    "what a branch reads": """c = ReduceMax<keepdims = 0>(x) t = Cast<to = 9>(c) h = Sin(x)
        y = If (t) <then_branch = p () => (float[1, 4] a) { a = Neg(h) },
                    else_branch = q () => (float[1, 4] b) { b = Exp(x) }>""",
    "what may do more than compute": "h = Exp(x) d = custom.Log(h) y = Relu(x)",
}


def read(body: str) -> onnx.ModelProto:
    return model(f"g (float[1, 4] x) => (float[1, p] y) {{ {body} }}", opset=18)


@pytest.mark.parametrize(("name", "takes_time"), [*((n, True) for n in RUN), *((n, False) for n in NOT_RUN)])
def test_what_nothing_needs_goes_and_outputs_stay(name: str, takes_time: bool) -> None:
    given = read((RUN | NOT_RUN)[name])
    program = understand(load(given))
    made = ir.to_proto(program.model)
    onnx.checker.check_model(made, full_check=True)
    assert len(made.graph.node) < len(given.graph.node)
    assert program.otherwise == takes_time
    assert (made.graph.input, made.graph.output) == (given.graph.input, given.graph.output)
    np.testing.assert_array_equal(run(given, {"x": X})[0], run(made, {"x": X})[0])


@pytest.mark.parametrize("body", KEPT.values(), ids=KEPT)
def test_what_is_needed_stays_and_the_model_is_not_copied_for_it(body: str) -> None:
    loaded = load(read(body))
    program = understand(loaded)
    assert program.model is loaded
    assert not program.otherwise


def test_a_weight_that_only_such_nodes_read_goes_with_them() -> None:
    given = model("g (float[1, 4] x) => (float[1, 4] y) <float[4] k = {1, 2, 3, 4}> { d = Mul(x, k) y = Relu(x) }")
    assert not understand(load(given)).model.graph.initializers
