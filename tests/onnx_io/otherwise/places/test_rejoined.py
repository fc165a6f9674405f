"""What is joined many times over is joined once, and places of that are taken."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from superopt.onnx_io import load, understand
from tests.onnx_io.models import model
from tests.onnx_io.networks import run

FIRST, SECOND = "a, a, a, b, b, c", "b, c, d, c, d, d"
JOINED = {
    "along an axis between": ("2, 1, 3", "1", 17),
    "along the first": ("1, 3", "0", 17),
    "along the last": ("2, 3", "-1", 17),
    "of more places each": ("2, 4, 3", "1", 17),
    "of an open batch": ("n, 1, 3", "1", 17),
    "in an older opset": ("2, 1, 3", "1", 9),
}
STAYS = {
    "once each": "a, b, c, d",
    "mostly once each": "a, b, c, d, a, b",
    "few": "a, a, a, b, b, b",
}


def joined(parts: str, sizes: str = "2, 1, 3", axis: str = "1", opset: int = 17) -> onnx.ModelProto:
    """A join of four values, of which some are there often."""
    given = ", ".join(f"float[{sizes}] {name}" for name in "abcd")
    sized = ", ".join(f"y{i}" for i, _ in enumerate(sizes.split(",")))
    return model(f"g ({given}) => (float[{sized}] y) {{ y = Concat<axis = {axis}>({parts}) }}", opset)


@pytest.mark.parametrize(("sizes", "axis", "opset"), JOINED.values(), ids=JOINED)
def test_what_is_there_often_is_joined_once(sizes: str, axis: str, opset: int) -> None:
    given = joined(f"{FIRST}, {SECOND}", sizes, axis, opset)
    program = understand(load(given))
    assert program.otherwise
    made = ir.to_proto(program.model)
    onnx.checker.check_model(made, full_check=True)
    assert (made.graph.input, made.graph.output) == (given.graph.input, given.graph.output)
    assert [len(node.input) for node in made.graph.node if node.op_type == "Concat"] == [4]
    shape = [int(d) if d.strip().isdigit() else 5 for d in sizes.split(",")]
    fed = {name: np.random.default_rng(i).standard_normal(shape).astype(np.float32) for i, name in enumerate("abcd")}
    np.testing.assert_array_equal(run(made, fed)[0], run(given, fed)[0])


def test_what_is_there_alone_is_not_joined() -> None:
    given = joined(", ".join("a" * 9))
    made = ir.to_proto(understand(load(given)).model)
    assert "Concat" not in [node.op_type for node in made.graph.node]
    fed = {name: np.random.default_rng(0).standard_normal((2, 1, 3)).astype(np.float32) for name in "abcd"}
    np.testing.assert_array_equal(run(made, fed)[0], run(given, fed)[0])


@pytest.mark.parametrize("parts", STAYS.values(), ids=STAYS)
def test_others_stay(parts: str) -> None:
    assert not understand(load(joined(parts))).otherwise


@pytest.mark.parametrize("sizes", ["2, n, 3", "2, 1, 1025"])
def test_what_is_large_or_of_unknown_size_stays(sizes: str) -> None:
    assert not understand(load(joined(f"{FIRST}, {SECOND}", sizes))).otherwise


def test_what_several_join_is_joined_once_for_all() -> None:
    first, second = "a, a, a, a, b, b, b, c, c", "b, c, d, c, d, d, b, c, d"
    sizes = ", ".join(f"float[2, 1, 3] {name}" for name in "abcd")
    joins = f"p = Concat<axis = 1>({first}) q = Concat<axis = 1>({second}) y = Mul(p, q)"
    given = model(f"g ({sizes}) => (float[2, 9, 3] y) {{ {joins} }}")
    made = ir.to_proto(understand(load(given)).model)
    assert {tuple(n.input) for n in made.graph.node if n.op_type == "Concat"} == {("a", "b", "c", "d")}
    fed = {
        name: np.random.default_rng(i).standard_normal((2, 1, 3)).astype(np.float32) for i, name in enumerate("abcd")
    }
    np.testing.assert_array_equal(run(made, fed)[0], run(given, fed)[0])


def test_what_is_not_there_yet_is_joined_by_itself() -> None:
    first, second = "a, a, a, a, b, b, b, b", "b, b, b, b, c, c, c, c"
    joins = f"p = Concat<axis = 1>({first}) c = Relu(p0) q = Concat<axis = 1>({second}) y = Mul(p, q)"
    given = model(f"g (float[2, 1, 3] a, float[2, 1, 3] b, float[2, 1, 3] p0) => (float[2, 8, 3] y) {{ {joins} }}")
    made = ir.to_proto(understand(load(given)).model)
    assert [tuple(n.input) for n in made.graph.node if n.op_type == "Concat"] == [("a", "b"), ("a", "b", "c")]
