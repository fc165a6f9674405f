"""Hard sigmoids between quantized values are sums, which end where bytes do."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from tests.onnx_io.otherwise.quantized.quantized_nodes import Held, model, pair
from tests.onnx_io.otherwise.reading import gain, operators_of

UNSIGNED = import_module("superopt.onnx_io.otherwise.quantized.unsigned_values")
EACH = np.arange(256, dtype=np.uint8)


def gate(
    scale: float = 0.0473126, zero: int = 117, to: float = 1 / 255, many: int = 16, **said: float
) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A hard sigmoid of bytes, and inputs that are each of these."""
    held: Held = {}
    nodes = [
        *pair("x", "a", held, scale, np.uint8(zero)),
        helper.make_node("HardSigmoid", ["a"], ["h"], **{"alpha": 1 / 6, "beta": 0.5, **said}),
        *pair("h", "y", held, to, np.uint8(0)),
    ]
    x = ((np.tile(EACH, many).astype(np.float32) - zero) * np.float32(scale)).reshape(1, many, 16, 16)
    return model(nodes, held, x.shape, x.shape), {"x": x}


@pytest.mark.parametrize("scale", [0.0437191, 0.0513377, 0.0619117, 0.0131933])
@pytest.mark.parametrize("zero", [0, 60, 117])
def test_all_bytes_are_the_same_as_a_sum_with_and_without_optimizations(scale: float, zero: int) -> None:
    source, fed = gate(scale, zero)
    assert operators_of(source, fed, rounds=False).count("Add") == 1


@pytest.mark.parametrize("given", [gate(alpha=-0.2), gate(many=2)], ids=["falling", "few"])
def test_others_stay(given: tuple[onnx.ModelProto, dict[str, np.ndarray]]) -> None:
    assert "HardSigmoid" in operators_of(*given, rounds=False)


def rectified(
    op: str = "Relu", to: float = 0.0373, zero: int = 128, kind: type[np.generic] = np.uint8, **held: np.generic
) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """What is rectified or cut between two pairs, and inputs that are each byte."""
    given: Held = {**held}
    low = np.iinfo(kind).min
    nodes = [
        *pair("x", "a", given, 0.0511, kind(120 + low)),
        helper.make_node(op, ["a", *held], ["h"]),
        *pair("h", "y", given, to, kind(zero + low)),
    ]
    x = ((np.tile(EACH, 16).astype(np.float32) - 120) * np.float32(0.0511)).reshape(1, 16, 16, 16)
    return model(nodes, given, x.shape, x.shape), {"x": x}


SIX = {"low": np.float32(0), "high": np.float32(6)}


@pytest.mark.parametrize("to", [0.0373, 0.0231, 0.0619, 6 / 127])
@pytest.mark.parametrize("zero", [0, 128, 100])
@pytest.mark.parametrize("op", ["Relu", "Clip"])
def test_what_is_rectified_or_cut_with_other_steps_is_a_sum(to: float, zero: int, op: str) -> None:
    given = rectified(op, to, zero, **(SIX if op == "Clip" else {}))
    found = operators_of(*given, rounds=False)
    assert (found.count("Add"), op in found[:4]) == (1, False)
    assert op == "Clip" or found.count("Clip") == (zero > 0)  # else bytes end by themselves


def test_with_the_same_steps_bytes_are_bounded_alone() -> None:
    found = operators_of(*rectified(to=0.0511, zero=120), rounds=False)
    assert found == ["QuantizeLinear", "Clip", "DequantizeLinear"]


@pytest.mark.parametrize("adds_up", [False, True])
def test_bytes_with_a_sign_count_so_too(adds_up: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(UNSIGNED, "all_are_exact", lambda _: adds_up)
    found = operators_of(*rectified(kind=np.int8), rounds=False)
    assert (found.count("Add"), "Relu" in found) == (1, False)


@pytest.mark.parametrize("name", ["Add", "Mul"])
def test_sums_and_products_with_bytes_stay(name: str) -> None:
    made, fed = rectified(name, low=np.float32(0.7))
    del made.graph.initializer[[t.name for t in made.graph.initializer].index("low")]
    held: Held = {"b": np.uint8(70), "b_scale": np.float32(0.01), "b_zero": np.uint8(0)}
    made.graph.initializer.extend(numpy_helper.from_array(np.asarray(a), n) for n, a in held.items())
    made.graph.node.insert(0, helper.make_node("DequantizeLinear", ["b", "b_scale", "b_zero"], ["low"]))
    found = operators_of(made, fed, rounds=False)
    assert found == [
        "DequantizeLinear",
        "QuantizeLinear",
        "DequantizeLinear",
        name,
        "QuantizeLinear",
        "DequantizeLinear",
    ]


def test_what_falls_stays() -> None:
    assert "Mul" in operators_of(*rectified("Mul", low=np.float32(-0.7)), rounds=False)


def test_bytes_that_go_beyond_1_are_bounded() -> None:
    found = operators_of(*gate(to=0.01), rounds=False)
    assert [found.count(kind) for kind in ("HardSigmoid", "Add", "Clip")] == [0, 1, 1]


def test_hard_sigmoids_are_faster_so() -> None:
    assert gain(*gate(many=1024)) > 1.5


def test_what_is_rectified_is_faster_so() -> None:
    source, _ = rectified()
    shape = (1, 64, 64, 64)
    for value in (*source.graph.input, *source.graph.output):
        for dim, size in zip(value.type.tensor_type.shape.dim, shape, strict=True):
            dim.dim_value = size
    assert gain(source, {"x": np.random.default_rng(0).standard_normal(shape).astype(np.float32)}) > 1.1
