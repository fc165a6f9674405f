"""Values that are the same whatever is given, as weights of zeros say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import numpy_helper

from superopt.onnx_io import Program, load, understand
from superopt.search.accepting.still import DEEPEST, Still
from tests.onnx_io.models import model


def read(text: str, **weights: NDArray[Any]) -> Program:
    source = model(text)
    source.graph.initializer.extend(numpy_helper.from_array(w, n) for n, w in weights.items())
    return understand(load(source))


NIL, ROW = np.zeros((3, 4), np.float32), np.arange(4, dtype=np.float32)


@pytest.mark.parametrize(
    "head",
    ["y = MatMul(x, w)", "y = Gemm(x, w, b)", "z = MatMul(x, w) y = Add(z, b)", "z = Mul(x, n) y = MatMul(z, v)"],
)
def test_what_is_multiplied_by_zeros_never_changes(head: str) -> None:
    program = read(f"g (float[2,3] x) => (float[2,4] y) {{ {head} }}", w=NIL, b=ROW, n=NIL[:1, :3], v=NIL + 1)
    assert Still(program).holds("y")


@pytest.mark.parametrize(
    "head", ["y = MatMul(x, v)", "y = Gemm(x, v, b)", "z = MatMul(x, w) u = MatMul(x, v) y = Add(z, u)"]
)
def test_what_is_not_may_change(head: str) -> None:
    program = read(f"g (float[2,3] x) => (float[2,4] y) {{ {head} }}", w=NIL, b=ROW, v=NIL + 1)
    assert not Still(program).holds("y")


def test_what_is_given_may_change_and_what_is_too_deep_is_not_looked_at() -> None:
    chain = " ".join(f"a{i + 1} = Relu(a{i})" for i in range(DEEPEST))
    program = read(f"g (float[2,3] x) => (float[2,4] a{DEEPEST}) {{ a0 = MatMul(x, w) {chain} }}", w=NIL)
    still = Still(program)
    assert (still.holds("x"), still.holds("a0"), still.holds(f"a{DEEPEST}")) == (False, True, False)


def test_what_stands_above_zeros_in_many_ways_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sums = " ".join(f"a{i + 1} = Add(a{i}, a{i})" for i in range(6))
    program = read(f"g (float[2,3] x) => (float[2,4] a6) {{ a0 = MatMul(x, w) {sums} }}", w=NIL)
    asked: list[str] = []
    still = Still(program)
    holds = still._holds_zeros

    def noted(name: str) -> bool:
        asked.append(name)
        return holds(name)

    monkeypatch.setattr(still, "_holds_zeros", noted)
    assert still.holds("a6")
    assert asked == ["w"]


@pytest.mark.parametrize(
    "head", ["y = LeakyRelu(z)", "y = Gelu(z)", "y = LayerNormalization(z, b, b)", "y = Softmax(z)"]
)
def test_it_is_told_of_symbolic_sizes_too(head: str) -> None:
    """Definitions ask of sizes what symbols leave open."""
    for weights, still in ((NIL, True), (NIL + 1, False)):
        source = model(f"g (float[n,3] x) => (float[n,4] y) {{ z = MatMul(x, w) {head} }}", opset=20)
        source.graph.initializer.extend(numpy_helper.from_array(w, n) for n, w in (("w", weights), ("b", ROW)))
        program = understand(load(source))
        assert [step.reason for step in program.steps] == ["", ""]
        assert Still(program).holds("y") == still


def test_numbers_that_are_counted_change_with_the_size() -> None:
    text = "g (float[n,3] x) => (int64[n] y) { s = Shape<start = 0, end = 1>(x) e = Squeeze(s) y = Range(nil, e, one) }"
    program = read(text, nil=np.array(0), one=np.array(1))
    assert [step.reason for step in program.steps] == [""]
    assert not Still(program).holds("y")
