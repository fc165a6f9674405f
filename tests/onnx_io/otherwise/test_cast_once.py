"""Columns that are each cast by themselves are taken of what was cast once."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from superopt.onnx_io import load, understand
from tests.onnx_io.models import model
from tests.onnx_io.networks import run

AXIS = "a = Constant<value_ints = [1]>()"
STAYS = {
    "few": (3, 8, ""),
    "a small part": (4, 40, ""),
    "slices that others read": (4, 8, "others"),
}


def columns(count: int, width: int, size: str = "2", others: str = "") -> onnx.ModelProto:
    """A sum of columns that are cast."""
    nodes = [AXIS]
    for i in range(count):
        ends = f"b{i} = Constant<value_ints = [{i}]>() e{i} = Constant<value_ints = [{i + 1}]>()"
        nodes.append(f"{ends} s{i} = Slice(x, b{i}, e{i}, a) c{i} = Cast<to = 7>(s{i})")
    if others:
        nodes.append(f"z = Sum({', '.join(f's{i}' for i in range(count))}) w = Cast<to = 7>(z)")
    joined = ", ".join([*(f"c{i}" for i in range(count)), *(["w"] if others else [])])
    nodes.append(f"y = Concat<axis = 1>({joined})")
    return model(f"g (float[{size}, {width}] x) => (int64[{size}, m] y) {{ {' '.join(nodes)} }}")


@pytest.mark.parametrize("size", ["2", "n"])
def test_columns_are_taken_of_what_was_cast_once(size: str) -> None:
    given = columns(6, 8, size)
    program = understand(load(given))
    assert program.otherwise
    made = ir.to_proto(program.model)
    onnx.checker.check_model(made, full_check=True)
    assert (made.graph.input, made.graph.output) == (given.graph.input, given.graph.output)
    assert [node.input[0] for node in made.graph.node if node.op_type == "Cast"] == ["x"]
    fed = {"x": np.arange(16, dtype=np.float32).reshape(2, 8)}
    np.testing.assert_array_equal(run(made, fed)[0], run(given, fed)[0])


def test_texts_stay_of_which_others_may_be_no_numbers() -> None:
    given = columns(6, 8)
    given.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.STRING
    assert not understand(load(given)).otherwise


@pytest.mark.parametrize(("count", "width", "others"), STAYS.values(), ids=STAYS)
def test_others_stay(count: int, width: int, others: str) -> None:
    assert not understand(load(columns(count, width, others=others))).otherwise
