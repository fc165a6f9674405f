"""Heads of attention that are written one by one are computed at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import numpy_helper

from superopt.onnx_io import load, understand
from tests.onnx_io.models import model
from tests.onnx_io.networks import run
from tests.onnx_io.otherwise.reading import operators_of

SHAPES = {"q": (6, 3), "k": (6, 3), "v": (6, 3), "b": (3,), "o": (3, 6), "s": (3, 1), "t": (3, 1), "m": (5, 5)}
LATER = np.triu(np.ones((5, 5)), 1).astype(bool)


def heads(
    head: Callable[[int], str], end: str = "", count: int = 4, more: str = "", inputs: str = "float[2, 5, 6] x"
) -> onnx.ModelProto:
    """A model with several heads, each of which gives a p with its number, with weights of its own."""
    end = end or f"y = Concat<axis = -1>({', '.join(f'p{i}' for i in range(count))})"
    made = model(f"g ({inputs}) => (float[a, b, c] y) {{ {more} {' '.join(map(head, range(count)))} {end} }}", 17)
    rng, used = np.random.default_rng(1), {name for node in made.graph.node for name in node.input}
    for kind, shape in SHAPES.items():
        for name in sorted({f"{kind}{i}" for i in range(count)} & used):
            made.graph.initializer.append(numpy_helper.from_array(rng.normal(size=shape).astype(np.float32), name))
    made.graph.initializer.append(numpy_helper.from_array(LATER, "later"))
    return made


def textbook(i: int) -> str:
    """As "let's build GPT" has it (Karpathy 2023)."""
    return f"""K{i} = MatMul(x, k{i}) Q{i} = MatMul(x, q{i}) T{i} = Transpose<perm = [0, 2, 1]>(K{i})
        w{i} = MatMul(Q{i}, T{i}) z{i} = Mul(w{i}, scale) h{i} = Where(later, never, z{i})
        a{i} = Softmax<axis = -1>(h{i}) V{i} = MatMul(x, v{i}) p{i} = MatMul(a{i}, V{i})"""


def biased(i: int) -> str:
    """Queries of one value, keys and values of another, all with biases."""
    return f"""k0{i} = MatMul(z, k{i}) K{i} = Add(b{i}, k0{i}) q0{i} = MatMul(x, q{i}) Q{i} = Add(q0{i}, b{i})
        T{i} = Transpose<perm = [0, 2, 1]>(K{i}) w{i} = MatMul(Q{i}, T{i}) a{i} = Softmax<axis = -1>(w{i})
        v0{i} = MatMul(z, v{i}) V{i} = Add(v0{i}, b{i}) p{i} = MatMul(a{i}, V{i})"""


def graph(i: int) -> str:
    """A head of graph attention, as torch's exporter writes `torch.mm`."""
    return f"""Q{i} = Gemm<beta = 0.0>(g, q{i}) l{i} = MatMul(Q{i}, s{i}) r{i} = MatMul(Q{i}, t{i})
        T{i} = Transpose<perm = [1, 0]>(r{i}) e{i} = Add(l{i}, T{i}) z{i} = LeakyRelu<alpha = 0.2>(e{i})
        c{i} = Greater(adjacent, zero) h{i} = Where(c{i}, z{i}, little) a{i} = Softmax<axis = 1>(h{i})
        p{i} = MatMul(a{i}, Q{i})"""


def masked(i: int) -> str:
    """With a mask of its own length, which each head cuts for itself, and one more layer."""
    return (
        f"""{textbook(i).replace("later", f"l{i}").replace(f"p{i} =", f"c{i} =")} p{i} = MatMul(c{i}, o{i})""".replace(
            f"h{i} =", f"n{i} = Shape(x) e{i} = Slice(n{i}, one, two) l{i} = Slice(later, start, e{i}, one) h{i} ="
        )
    )


SCALE = "scale = Constant<value_float = 0.5>() never = Constant<value_float = -1e9>() "
INTS = """start = Constant<value_ints = [0]>() one = Constant<value_ints = [1]>() two = Constant<value_ints = [2]>() """
GRAPH = """none = Constant<value_ints = [0]>() g = Squeeze(x, none) zero = Constant<value_float = 0.0>()
    little = Constant<value_float = -9e15>() """
X = {"x": np.random.default_rng(0).standard_normal((2, 5, 6)).astype(np.float32)}
Z = {**X, "z": np.random.default_rng(2).standard_normal((2, 4, 6)).astype(np.float32)}
G = {"x": X["x"][:1], "adjacent": (np.random.default_rng(3).random((5, 5)) < 0.5).astype(np.float32)}
CASES = {
    "of a textbook": (heads(textbook, more=SCALE), X),
    "of which there are two": (heads(textbook, count=2, more=SCALE), X),
    "of an open batch": (heads(textbook, more=SCALE, inputs="float[n, 5, 6] x"), X),
    "of another value": (heads(biased, inputs="float[n, 5, 6] x, float[n, 4, 6] z"), Z),
    "of open lengths": (heads(biased, inputs="float[n, l, 6] x, float[n, s, 6] z"), Z),
    "that add up": (heads(masked, "sum = Add(p0, p1) all = Add(sum, p2) y = Tanh(all)", 3, SCALE + INTS), X),
    "of a graph": (
        heads(graph, "h = Concat<axis = 1>(p0, p1, p2, p3) y = Unsqueeze(h, none)", 4, GRAPH,
              "float[1, 5, 6] x, float[5, 5] adjacent"), G),
    "below each other": (heads(textbook, "y = Concat<axis = 1>(p0, p1, p2, p3)", more=SCALE), X),
    "beside what they read": (heads(textbook, "y = Concat<axis = 2>(x, p0, p1, p2, p3)", more=SCALE), X),
}  # fmt: skip


@pytest.mark.parametrize(("given", "feeds"), CASES.values(), ids=CASES)
def test_heads_are_computed_at_once(given: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> None:
    counts = Counter(operators_of(given, feeds))
    assert counts["Softmax"] == 1
    assert counts["MatMul"] + counts["Gemm"] <= 6


STAYS = {
    "the shares of one of which are an output": heads(textbook, more=SCALE),
    "of many rows": heads(textbook, more=SCALE, inputs="float[200, 5, 6] x"),
    "that are joined along what is open": heads(
        biased, "y = Concat<axis = 1>(p0, p1, p2, p3)", inputs="float[n, l, 6] x, float[n, s, 6] z"
    ),
}
STAYS["the shares of one of which are an output"].graph.output.append(
    onnx.helper.make_tensor_value_info("a2", onnx.TensorProto.FLOAT, [2, 5, 5])
)


@pytest.mark.parametrize("given", STAYS.values(), ids=STAYS)
def test_others_stay(given: onnx.ModelProto) -> None:
    assert not understand(load(given)).otherwise


def test_sizes_of_what_heads_compute_are_told_without_them() -> None:
    """A script scales by the width of the keys, and exporters read it from these."""
    width = "n{i} = Shape(K{i}) w{i} = Gather(n{i}, last) f{i} = Cast<to = 1>(w{i}) z{i} = Div(u{i}, f{i})"

    def scaled(i: int) -> str:
        return textbook(i).replace(f"w{i} =", f"u{i} =").replace(f"z{i} = Mul(w{i}, scale)", width.format(i=i))

    given = heads(scaled, more=f"{SCALE} last = Constant<value_int = 2>()", inputs="float[n, 5, 6] x")
    made = ir.to_proto(understand(load(given)).model)
    assert Counter(node.op_type for node in made.graph.node)["MatMul"] == 5
    np.testing.assert_allclose(run(given, X)[0], run(made, X)[0], rtol=1e-5, atol=1e-6)
