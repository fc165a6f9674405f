"""Which branches run is told by inputs of one element, or by nothing."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import pytest

from superopt.onnx_io import choices, counting, load, understand
from tests.merged import conditional
from tests.onnx_io.networks import run


@pytest.mark.parametrize(
    ("condition", "inputs", "runs"),
    [
        ("c = Squeeze(flag)", "bool[1] flag", [({"flag": True}, "then"), ({"flag": False}, "else")]),
        ("c = Not(flag)", "bool flag", [({"flag": True}, "else"), ({"flag": False}, "then")]),
        (
            "d = Identity(flag) c = And(d, other)",
            "bool flag, bool other",
            [({"flag": True, "other": True}, "then"), ({"flag": True, "other": False}, "else")],
        ),
        (
            "k = Constant<value = int64 {16000}>() c = Equal(rate, k)",
            "int64 rate",
            [({"rate": 16000}, "then"), ({"rate": 0}, "else")],
        ),
        ("k = Constant<value_ints = [0]>() c = Less(k, n)", "int64[1] n", [({"n": 0}, "else"), ({"n": 1}, "then")]),
        ("c = Cast<to = 9>(flag)", "int64[1] flag", [({"flag": 0}, "else"), ({"flag": 1}, "then")]),
    ],
)
def test_inputs_of_one_element_say_which_branch_runs(
    condition: str, inputs: str, runs: list[tuple[dict[str, int], str]]
) -> None:
    source = conditional(condition, inputs)
    found = [(given, next(iter(run)).name) for given, run in choices(understand(load(source)))]
    assert found == [(given, f"{name}_branch") for given, name in runs]
    x = np.float32([1, 2])
    for given, name in runs:
        (y,) = run(source, {"x": x, **{n: of_one(source, n, number) for n, number in given.items()}})
        np.testing.assert_allclose(y, -x if name == "then" else np.exp(x), rtol=1e-6)


def of_one(source: onnx.ModelProto, name: str, number: int) -> np.ndarray:
    declared = next(i.type.tensor_type for i in source.graph.input if i.name == name)
    dtype = onnx.helper.tensor_dtype_to_np_dtype(declared.elem_type)
    return np.full([d.dim_value for d in declared.shape.dim], number, dtype)


def test_samples_are_choices_of_their_own() -> None:
    program = understand(load(conditional("k = Constant<value = int64 {16000}>() c = Equal(rate, k)", "int64 rate")))
    samples = [{"x": np.float32([1, 2]), "rate": np.int64(rate)} for rate in (8000, 4000, 8000)]
    assert [given["rate"] for given, _ in choices(program, samples)] == [8000, 4000, 16000]


@pytest.mark.parametrize(
    ("condition", "inputs"),
    [
        ("s = ReduceSum<keepdims = 0>(x) z = Constant<value = float {0}>() c = Greater(s, z)", "bool[1] flag"),
        ("c = Constant<value = bool {1}>()", "bool[1] flag"),
        ("one = Constant<value = int64 {0}>() c = Gather(flag, one)", "bool[2] flag"),
        ("z = Constant<value = float {0}>() c = Greater(n, z)", "float n"),
        ("d = And(e, f) c = And(flag, d)", "bool flag, bool e, bool f"),
        ("d = Cast<to = 1>(flag) e = Bernoulli(d) c = Cast<to = 9>(e)", "bool flag"),
    ],
    ids=["numbers", "a constant", "one of two", "a float", "three inputs", "chance"],
)
def test_what_else_decides_leaves_branches_alone(condition: str, inputs: str) -> None:
    assert choices(understand(load(conditional(condition, inputs)))) == []


def test_numbers_that_an_input_cannot_hold_are_not_tried() -> None:
    largest = np.iinfo(np.int64).max
    source = conditional(f"k = Constant<value = int64 {{{largest}}}>() c = Equal(n, k)", "int64 n")
    assert [given["n"] for given, _ in choices(understand(load(source)))] == [largest, 0]


def test_a_condition_at_the_end_of_a_long_chain_is_left_alone() -> None:
    chain = " ".join(f"v{i + 1} = Not(v{i})" for i in range(3000))
    source = conditional(f"v0 = Identity(flag) {chain} c = Identity(v3000)", "bool flag")
    assert choices(understand(load(source))) == []


@pytest.mark.parametrize(
    ("count", "inputs", "found"),
    [
        ("m = Identity(n)", "int64 n", {"n"}),
        ("q = Cast<to = 7>(n) m = Squeeze(q)", "int32[1] n", {"n"}),
        ("m = Constant<value = int64 {3}>()", "int64 n", set()),
        ("s = Shape(x) m = Squeeze(s)", "int64 n", set()),
    ],
)
def test_inputs_that_say_how_often_a_loop_turns_are_told(count: str, inputs: str, found: set[str]) -> None:
    source = f"""<ir_version: 8, opset_import: ["" : 17]> g (float[2] x, {inputs}) => (float[2] y) <bool go = {{1}}> {{
        {count} y = Loop(m, go, x) <body = b (int64 i, bool c, float[2] s) => (bool d, float[2] r)
        {{ d = Identity(c) r = Tanh(s) }}> }}"""
    assert counting(understand(load(onnx.parser.parse_model(source)))) == found
