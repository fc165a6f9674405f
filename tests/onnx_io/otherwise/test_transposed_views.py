"""What is merged, transposed and taken apart again is transposed at once, also where sizes are open."""

from __future__ import annotations

import numpy as np
import pytest

from tests.onnx_io.models import model
from tests.onnx_io.otherwise.reading import gain, operators_of

HELD = (
    "int64[1] rest = {-1}, int64[3] stack = {-1, 5, 4}, int64[3] six = {6, 5, 4}, int64[4] heads = {2, 3, 4, 5}, "
    "int64[4] one = {1, 6, 4, 5}, int64[1] four = {4}, int64[1] three = {3}, int64[1] first = {0}, int64[1] third = {2}"
)
OPEN = """
    s = Shape<start = 0, end = 1>(x) t = Shape<start = 2, end = 3>(x)
    merged = Concat<axis = 0>(rest, t, four) wanted = Concat<axis = 0>(s, three, four, t)
"""


def graph(x: str, nodes: str, y: str = "k, l, m, n") -> str:
    """A model with numbers of these sizes, which are given as they are to what a node makes of them."""
    return f"g (float[{x}] w) => (float[{y}] y) <{HELD}> {{ x = Exp(w) {nodes} }}"


TURNED = "u = Reshape(x, {}) t1 = Transpose<perm = [0, 2, 1]>(u) y = Reshape(t1, {})"
AT_ONCE = {
    "heads": (graph("2, 3, 5, 4", TURNED.format("six", "heads")), ["Exp", "Transpose"]),
    "of any number": (graph("2, 3, 5, 4", TURNED.format("stack", "heads")), ["Exp", "Transpose"]),
    "of any batch and length": (
        graph("N, 3, M, 4", OPEN + TURNED.format("merged", "wanted")), ["Exp", "Transpose"]),
    "by what leaves an axis out": (
        graph("1, 6, 5, 4", "u = Squeeze(x, first) t1 = Transpose<perm = [0, 2, 1]>(u) y = Unsqueeze(t1, first)"),
        ["Exp", "Transpose"]),
    "in the order that is meant": (
        graph("2, 3, 5, 4", "u = Reshape(x, six) t1 = Transpose(u) y = Reshape(t1, back)").replace(
            HELD, f"{HELD}, int64[4] back = {{4, 5, 2, 3}}"), ["Exp", "Transpose"]),
    "of what was merged before": (
        graph("1, 2, 3, 5, 4", TURNED.format("six", "one")), ["Exp", "Reshape", "Transpose"]),
}  # fmt: skip


def read(text: str) -> list[str]:
    """The operators of a model as it is read."""
    source = model(text, opset=17)
    shape = [d.dim_value or (2 if d.dim_param == "N" else 5) for d in source.graph.input[0].type.tensor_type.shape.dim]
    return operators_of(source, {"w": np.random.default_rng(0).standard_normal(shape).astype(np.float32)}, rounds=False)


@pytest.mark.parametrize(("text", "operators"), AT_ONCE.values(), ids=AT_ONCE)
def test_it_is_transposed_at_once(text: str, operators: list[str]) -> None:
    assert read(text) == operators


STAYING = {
    "what is not taken apart as it was": graph("2, 3, 4, 5", TURNED.format("six", "heads")),
    "what is merged in the end": graph("6, 5, 4", "t1 = Transpose<perm = [0, 2, 1]>(x) y = Reshape(t1, rest)", "n"),
    "what something else reads": graph(
        "2, 3, 5, 4",
        TURNED.format("six", "heads").replace("y =", "v =") + " z = Exp(t1) a = Reshape(z, heads) y = Add(v, a)",
    ),
    "channels that are shuffled": graph(
        "1, 6, 5, 4", "u = Reshape(x, apart) t1 = Transpose<perm = [0, 2, 1, 3, 4]>(u) y = Reshape(t1, as)"
    ).replace(HELD, f"{HELD}, int64[5] apart = {{1, 2, 3, 5, 4}}, int64[4] as = {{1, 6, 5, 4}}"),
}


@pytest.mark.parametrize("text", STAYING.values(), ids=STAYING)
def test_these_stay(text: str) -> None:
    assert read(text).count("Reshape") >= 1


def test_the_cache_of_a_step_is_not_copied() -> None:
    text = """g (float[N, 8, 1, 64] q, float[N, 8, M, 64] k) => (float[a, b, c, d] y)
        <int64[1] rest = {-1}, int64[1] eight = {8}, int64[1] wide = {64}> {
        n = Shape<start = 0, end = 1>(k) t = Shape<start = 2, end = 3>(k) merged = Concat<axis = 0>(rest, t, wide)
        wanted = Concat<axis = 0>(n, eight, wide, t) u = Reshape(k, merged) v = Transpose<perm = [0, 2, 1]>(u)
        w = Reshape(v, wanted) y = MatMul(q, w) }"""
    rng = np.random.default_rng(0)
    feeds = {name: rng.standard_normal((1, 8, n, 64)).astype(np.float32) for name, n in (("q", 1), ("k", 1024))}
    assert gain(model(text, opset=17), feeds) > 1.5
