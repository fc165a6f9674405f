"""Queries of several heads that share keys and values are rows of one product, and nothing is repeated for them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.onnx_io.models import model
from tests.onnx_io.otherwise.reading import gain, operators_of

HELD = (
    "int64[1] second = {2}, int64[5] wide = {2, 2, 3, 5, 4}, int64[4] merged = {2, 6, 5, 4}, "
    "int64[5] apart = {2, 2, 1, 5, 4}, float scale = {0.5}, float large = {2.0}, "
    "float[1, 1, 1, 4] weights = {1, 2, 3, 4}, "
    "int64[1] n1 = {1}, int64[1] two = {2}, int64[1] three = {3}, int64[1] four = {4}, int64[1] six = {6}"
)
COMPUTED = """
    n = Shape<start = 0, end = 1>(k) t = Shape<start = 2, end = 3>(k)
    wide = Concat<axis = 0>(n, two, three, t, four) merged = Concat<axis = 0>(n, six, t, four)
"""
REPEATED = "u = Unsqueeze(k, second) e = Expand(u, wide) r = Reshape(e, merged)"
SCORES = "t1 = Transpose<perm = [0, 1, 3, 2]>(r) y = MatMul(q, t1)"


def graph(nodes: str, q: str = "2, 6, 1, 4", k: str = "2, 2, 5, 4", held: str = HELD) -> str:
    """A model of queries and keys or values of these sizes."""
    return f"g (float[{q}] q, float[{k}] w) => (float[k1, l1, m1, n1] y) <{held}> {{ k = Exp(w) {nodes} }}"


OPEN = HELD.replace("int64[5] wide = {2, 2, 3, 5, 4}, int64[4] merged = {2, 6, 5, 4}, ", "")
TURNED = ["Exp", "Reshape", "Transpose", "MatMul", "Reshape"]
GROUPED = {
    "scores": (graph(REPEATED + SCORES), TURNED),
    "values": (graph(REPEATED + "y = MatMul(q, r)", "2, 6, 1, 5"), ["Exp", "Reshape", "MatMul", "Reshape"]),
    "a few queries": (graph(REPEATED + SCORES, "2, 6, 7, 4"), TURNED),
    "any batch and length": (graph(COMPUTED + REPEATED + SCORES, "N, 6, 1, 4", "N, 2, T, 4", OPEN), TURNED),
    "any number of queries": (graph(COMPUTED + REPEATED + SCORES, "N, 6, Q, 4", "N, 2, T, 4", OPEN), TURNED),
    "values of any batch and length": (
        graph(COMPUTED + REPEATED + "y = MatMul(q, r)", "N, 6, 1, T", "N, 2, T, 4", OPEN),
        ["Exp", "Reshape", "MatMul", "Reshape"]),
    "keys that are scaled": (
        graph(REPEATED + "t1 = Transpose<perm = [0, 1, 3, 2]>(r) s = Mul(t1, scale) y = MatMul(q, s)"),
        ["Exp", "Reshape", "Mul", "Transpose", "MatMul", "Reshape"]),
    "keys that are divided before they are turned": (
        graph(REPEATED + "s = Div(r, large) t1 = Transpose<perm = [0, 1, 3, 2]>(s) y = MatMul(q, t1)"),
        ["Exp", "Reshape", "Div", "Transpose", "MatMul", "Reshape"]),
    "keys that are viewed by a Reshape": (
        graph("u = Reshape(k, apart) e = Expand(u, wide) r = Reshape(e, merged)" + SCORES), TURNED),
    "keys that are viewed as a stack": (
        graph(REPEATED + "a = Reshape(r, stack) b = Transpose<perm = [0, 2, 1]>(a)"
              "c = Reshape(b, heads) y = MatMul(q, c)",
              held=f"{HELD}, int64[3] stack = {{12, 5, 4}}, int64[4] heads = {{2, 6, 4, 5}}"), TURNED),
}  # fmt: skip


def read(text: str) -> list[str]:
    """The operators of a model as it is read."""
    source, rng = model(text, opset=17), np.random.default_rng(0)
    open_sizes = {"N": 2, "T": 5, "Q": 3}
    feeds = {
        x.name: rng.standard_normal(
            [d.dim_value or open_sizes[d.dim_param] for d in x.type.tensor_type.shape.dim]
        ).astype(np.float32)
        for x in source.graph.input
    }
    return operators_of(source, feeds)


@pytest.mark.parametrize(("text", "operators"), GROUPED.values(), ids=GROUPED)
def test_nothing_is_repeated(text: str, operators: list[str]) -> None:
    assert read(text) == operators


MEASURED = {
    "all of it": ("s = Shape(r)", ["Shape", "Mul"]),
    "a part of it": ("s = Shape<start = 1, end = 3>(r)", ["Shape", "Mul"]),
    "its last sizes": ("s = Shape<start = -2>(r)", ["Shape", "Mul"]),
}


@pytest.mark.parametrize(("shape", "operators"), MEASURED.values(), ids=MEASURED)
def test_its_shape_is_told_by_what_is_there_once(shape: str, operators: list[str]) -> None:
    text = graph(COMPUTED + REPEATED + SCORES + shape, "N, 6, 1, 4", "N, 2, T, 4", OPEN)
    found = read(text.replace("=> (float[k1, l1, m1, n1] y)", "=> (float[k1, l1, m1, n1] y, int64[z1] s)"))
    assert [op for op in found if op not in TURNED or op == "Shape"] == operators


STAYING = {
    "many queries": graph(REPEATED + SCORES, "2, 6, 64, 4"),
    "heads in another order": graph(
        "u = Unsqueeze(k, n1) e = Expand(u, wide) r = Reshape(e, merged)" + SCORES,
        held=HELD.replace("wide = {2, 2, 3, 5, 4}", "wide = {2, 3, 2, 5, 4}"),
    ),
    "keys that are weighed": graph(REPEATED + "s = Mul(r, weights)" + SCORES.replace("(r)", "(s)")),
    "keys that are made larger": graph(REPEATED + "s = Mul(r, large)" + SCORES.replace("(r)", "(s)")),
    "what is repeated on the left": graph(REPEATED + "y = MatMul(r, q)", "2, 6, 4, 1"),
    "queries of one head": graph(REPEATED + SCORES, "2, 1, 1, 4"),
}  # fmt: skip


@pytest.mark.parametrize("text", STAYING.values(), ids=STAYING)
def test_these_stay(text: str) -> None:
    assert "Expand" in read(text)


def test_a_step_takes_its_cache_as_it_is() -> None:
    held = "int64[1] second = {2}, int64[5] wide = {1, 2, 4, 1024, 64}, int64[4] merged = {1, 8, 1024, 64}"
    rng = np.random.default_rng(0)
    sizes = {"q": (1, 8, 1, 64), "w": (1, 2, 1024, 64)}
    feeds = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in sizes.items()}
    source = model(graph(REPEATED + SCORES, "1, 8, 1, 64", "1, 2, 1024, 64", held).replace("k = Exp(w)", "k = Relu(w)"))
    assert gain(source, feeds) > 1.5
