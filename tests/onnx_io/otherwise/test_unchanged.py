"""What moves nothing is left out: joins of one, cuts of all, repetitions of one time, by sizes that are open too."""

from __future__ import annotations

import numpy as np
import pytest

from tests.onnx_io.models import model
from tests.onnx_io.otherwise.reading import gain, operators_of

HELD = (
    "int64[1] zero = {0}, int64[1] one = {1}, int64[2] once = {1, 1}, int64[4] none = {0, 0, 0, 0}, "
    "int64[3] others = {0, 2, 1}, int64[1] two = {2}"
)


def graph(nodes: str, sizes: str = "2, 3", y: str = "m, n") -> str:
    """A model of numbers of these sizes, with an operator before what is told and one behind it."""
    return f"g (float[{sizes}] w) => (float[{y}] y) <{HELD}> {{ x = Exp(w) {nodes} y = Abs(z) }}"


LEFT_OUT = {
    "a join of one": graph("z = Concat<axis = 0>(x)"),
    "an expansion to its own shape": graph("s = Shape(x) z = Expand(x, s)", "N, M"),
    "a cut of its own length": graph("s = Shape<start = 1>(x) z = Slice(x, zero, s, one)", "N, M"),
    "a repetition of one time": graph("z = Tile(x, once)"),
    "a rectifier that bends nothing": graph("z = LeakyRelu<alpha = 1.0>(x)"),
    "zeros that are not there": graph("z = Pad(x, none)"),
    "several after each other": graph("s = Shape(x) u = Concat<axis = 0>(x) z = Expand(u, s)", "N, M"),
}


def read(text: str, *sizes: int) -> list[str]:
    """The operators of a model as it is read."""
    feeds = {"w": np.random.default_rng(0).standard_normal(sizes).astype(np.float32)}
    return operators_of(model(text), feeds, rounds=False)


@pytest.mark.parametrize("text", LEFT_OUT.values(), ids=LEFT_OUT)
def test_it_is_left_out(text: str) -> None:
    assert read(text, 2, 3) == ["Exp", "Abs"]


STAYING = {
    "an expansion to another shape": graph("s = Concat<axis = 0>(two, one, one) z = Expand(x, s)", y="k, m, n"),
    "a join of two": graph("z = Concat<axis = 0>(x, x)"),
    "places in another order": graph("z = Gather<axis = 1>(x, others)"),
    "what the model gives": graph("y = Concat<axis = 0>(x)").replace("y = Abs(z)", ""),
}


@pytest.mark.parametrize("text", STAYING.values(), ids=STAYING)
def test_these_stay(text: str) -> None:
    assert {"Expand", "Concat", "Gather"}.intersection(read(text, 2, 3))


def test_an_input_is_read_as_it_is() -> None:
    text = "g (float[N, 3] w) => (float[m, n] y) { x = Concat<axis = 0>(w) y = Exp(x) }"
    assert read(text, 2, 3) == ["Exp"]


def test_what_a_subgraph_reads_is_what_was_given() -> None:
    text = """g (float[2, 3] w, bool c) => (float[m, n] y) { x = Exp(w) z = Concat<axis = 0>(x)
        y = If(c)<then_branch = a () => (float[m, n] u) { u = Abs(z) },
                  else_branch = b () => (float[m, n] v) { v = Neg(z) }> }"""
    feeds = {"w": np.ones((2, 3), np.float32), "c": np.array(True)}
    assert operators_of(model(text), feeds, rounds=False) == ["Exp", "If"]


def test_a_text_is_not_copied_at_each_step() -> None:
    text = """g (float[1, 8, 1, 64] q, float[1, 8, 1500, 64] k) => (float[a, b, c, d] y) {
        u = Concat<axis = 2>(k) v = Transpose<perm = [0, 1, 3, 2]>(u) y = MatMul(q, v) }"""
    rng = np.random.default_rng(0)
    feeds = {name: rng.standard_normal((1, 8, n, 64)).astype(np.float32) for name, n in (("q", 1), ("k", 1500))}
    assert gain(model(text), feeds) > 1.5
