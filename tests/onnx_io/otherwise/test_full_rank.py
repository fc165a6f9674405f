"""Numbers beside rows of one element have as many axes, and what is computed stays the same."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import superopt
from superopt.api import Options
from superopt.onnx_io.otherwise.full_rank import LEAST
from tests.models import assert_same
from tests.onnx_io.models import as_read, model
from tests.onnx_io.networks import run

FLOATS = ("Add", "Sub", "Mul", "Div", "Max", "Min", "Pow")
ORDERS = ("Less", "LessOrEqual", "Greater", "GreaterOrEqual")


def beside(
    op: str, shape: str, turned: bool = False, constant: str = "float c = {0.5}", before: str = "", dtype: str = "float"
) -> str:
    """A model of one operator on a value of a shape, or on what is computed of that before, and a number."""
    inputs = "c, a" if turned else "a, c"
    given = before or "a = Identity(x)"
    result = "bool" if op in ORDERS else dtype
    return f"g ({dtype}[{shape}] x) => ({result}[{shape}] y) <{constant}> {{ {given} y = {op}({inputs}) }}"


def ranks(made: onnx.ModelProto) -> list[int]:
    """How many axes the constants of a model have."""
    held = [n.attribute[0].t for n in made.graph.node if n.op_type == "Constant"]
    return [numpy_helper.to_array(t).ndim for t in (*made.graph.initializer, *held) if t.name != "c"]


@pytest.mark.parametrize("op", [*FLOATS, *ORDERS])
@pytest.mark.parametrize("turned", [False, True], ids=["behind", "in front"])
@pytest.mark.parametrize("shape", [(1, LEAST, 1), (LEAST, 1), (2, 1, LEAST, 1)], ids=str)
@pytest.mark.parametrize("number", ["float c = {0.5}", "float[1] c = {0.5}"], ids=["no axis", "one axis"])
def test_a_number_beside_rows_of_one_element_has_all_axes(
    op: str, turned: bool, shape: tuple[int, ...], number: str
) -> None:
    source, made = as_read(beside(op, ", ".join(map(str, shape)), turned, number))
    assert ranks(made) == [len(shape)]
    x = {"x": np.random.default_rng(0).uniform(0.1, 1.0, shape).astype(np.float32)}
    x["x"].flat[:2] = 0.5, np.inf
    (expected,), (found,) = run(source, x), run(made, x)
    np.testing.assert_array_equal(found, expected)


OTHERS = {
    "a mask": ("bool c = {1}", "m = Greater(x, k) y = And(m, c)", "bool", 2),
    "a choice": ("float c = {0.5}", "m = Greater(x, k) y = Where(m, x, c)", "float", 2),
    "a choice of two numbers": ("float c = {0.5}", "m = Greater(x, k) y = Where(m, k, c)", "float", 3),
    "a remainder": ("float c = {0.5}", "y = Mod<fmod = 1>(x, c)", "float", 1),
    "a sum of several": ("float c = {0.5}", "y = Sum(x, c, k)", "float", 2),
    "the largest of several": ("float c = {0.5}", "y = Max(c, x, k)", "float", 2),
    "an equality": ("float c = {0.5}", "y = Equal(x, c)", "bool", 1),
}


@pytest.mark.parametrize(("constant", "nodes", "result", "count"), OTHERS.values(), ids=OTHERS)
def test_whatever_broadcasts_reads_numbers_of_all_axes(constant: str, nodes: str, result: str, count: int) -> None:
    source, made = as_read(
        f"g (float[{LEAST}, 1] x) => ({result}[{LEAST}, 1] y) <{constant}, float k = {{0.25}}> {{ {nodes} }}"
    )
    assert ranks(made).count(2) == count
    x = {"x": np.linspace(-1.0, 1.0, LEAST, dtype=np.float32).reshape(LEAST, 1)}
    np.testing.assert_array_equal(run(made, x)[0], run(source, x)[0])


def test_slopes_have_all_axes_where_an_opset_leaves_them_slopes() -> None:
    nodes = "a = Abs(x) y = PRelu(x, c)"
    source, made = as_read(f"g (float[{LEAST}, 1] x) => (float[{LEAST}, 1] y) <float[1] c = {{0.5}}> {{ {nodes} }}", 7)
    assert ranks(made) == [2]
    x = {"x": np.linspace(-1.0, 1.0, LEAST, dtype=np.float32).reshape(LEAST, 1)}
    np.testing.assert_array_equal(run(made, x)[0], run(source, x)[0])


def test_how_many_rows_there_are_may_be_open() -> None:
    source, made = as_read(beside("Mul", f"n, {LEAST}, 1"))
    assert ranks(made) == [3]
    for n in (1, 3):
        x = {"x": np.random.default_rng(n).standard_normal((n, LEAST, 1)).astype(np.float32)}
        np.testing.assert_array_equal(run(made, x)[0], run(source, x)[0])


def test_integers_are_numbers_too() -> None:
    source, made = as_read(beside("Mul", f"{LEAST}, 1", constant="int64 c = {3}", dtype="int64"))
    assert ranks(made) == [2]
    x = {"x": np.arange(LEAST, dtype=np.int64).reshape(LEAST, 1)}
    np.testing.assert_array_equal(run(made, x)[0], run(source, x)[0])


LEFT = {
    "longer rows": beside("Add", f"{LEAST}, 2"),
    "one axis": beside("Add", f"{LEAST}"),
    "few elements": beside("Add", f"{LEAST - 1}, 1"),
    "all axes": beside("Add", f"{LEAST}, 1", constant="float[1, 1] c = {0.5}"),
    "several numbers": beside("Add", f"{LEAST}, 1", constant="float[1, 2] c = {0.5, 1.0}").replace(
        f"=> (float[{LEAST}, 1] y)", f"=> (float[{LEAST}, 2] y)"
    ),
    "what is added to a mean": beside(
        "Add", f"{LEAST}, 1", before="a = ReduceMean<axes = [1]>(x)", constant="float c = {1e-5}"
    ),
    "a function of one value": beside("Add", f"{LEAST}, 1", before="a = Identity(x)").replace("Add(a, c)", "Relu(a)"),
}


@pytest.mark.parametrize("text", LEFT.values(), ids=LEFT)
def test_where_it_is_read_as_fast_it_stays(text: str) -> None:
    source, made = as_read(text)
    assert [n.op_type for n in made.graph.node if n.op_type == "Constant"] == []
    assert len(made.graph.initializer) == len(source.graph.initializer)


def test_a_signal_with_channels_last_is_computed_faster_and_is_the_same(options: Options) -> None:
    text = (
        "g (float[1, 16000, 1] x) => (float[1, 16000, 1] y) <float a = {3.0}, float b = {0.5}, float c = {2.0}> "
        "{ d = Mul(x, a) e = Add(d, b) f = Max(e, c) y = Sub(f, b) }"
    )
    given = model(text, 17)
    result = superopt.optimize(given, options)
    assert result.report.outcome == "faster"
    assert_same(result.proto(), given)
