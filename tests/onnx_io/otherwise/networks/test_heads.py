"""Small networks of one make are computed at once."""

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

SHAPES = {"w": (6, 3), "v": (3, 2), "b": (3,), "s": (3,), "k": (1, 3), "d": (3,), "u": (6, 4), "q": (6, 6), "o": (6,)}
X = np.random.default_rng(0).standard_normal((2, 6)).astype(np.float32)


def networks(
    part: Callable[[int], str], end: str = "", count: int = 6, more: str = "", rows: str = "2", opset: int = 17
) -> onnx.ModelProto:
    """A model with several networks, each of which gives a p with its number, and weights of its own."""
    names = ", ".join(f"p{i}" for i in range(count))
    end = end or f"y = Concat<axis = 1>({names})"
    nodes = " ".join(map(part, range(count)))
    made = model(f"g (float[{rows}, 6] x) => (float[m, n] y) {{ {more} {nodes} {end} }}", opset)
    rng, used = np.random.default_rng(1), {name for node in made.graph.node for name in node.input}
    for kind, shape in SHAPES.items():
        for name in sorted({f"{kind}{i}" for i in range(count)} & used):
            data = rng.uniform(0.5, 1.5, shape).astype(np.float32) * rng.choice([-1, 1] if kind != "s" else [1])
            made.graph.initializer.append(numpy_helper.from_array(data.astype(np.float32), name))
    return made


def two_layers(i: int) -> str:
    return f"h{i} = Gemm(x, w{i}, b{i}) r{i} = Relu(h{i}) p{i} = MatMul(r{i}, v{i})"


def column(i: int, at: int | None = None) -> str:
    at = i if at is None else at
    return f"""f{i} = Constant<value_ints = [{at}]>() t{i} = Constant<value_ints = [{at + 1}]>()
        c{i} = Slice(x, f{i}, t{i}, one) h{i} = Gemm(c{i}, k{i}, b{i}) r{i} = Tanh(h{i}) p{i} = MatMul(r{i}, v{i})"""


def normed(i: int) -> str:
    return f"""h{i} = MatMul(x, w{i}) n{i} = LayerNormalization(h{i}, s{i}, b{i}) r{i} = Sigmoid(n{i})
        z{i} = Gemm<transB = 1>(r{i}, t) p{i} = Softmax<axis = 1>(z{i})"""


def standardized(i: int) -> str:
    return f"h{i} = MatMul(x, w{i}) n{i} = BatchNormalization(h{i}, d{i}, b{i}, d{i}, s{i}) p{i} = Relu(n{i})"


def picked(i: int) -> str:
    return f"""h{i} = MatMul(x, w{i}) r{i} = LogSoftmax<axis = -1>(h{i}) g{i} = Gather<axis = 1>(r{i}, last)
        p{i} = Unsqueeze(g{i}, one)"""


def gathered(i: int) -> str:
    """A column as exporters take it from a table: by its number."""
    return f"""n{i} = Constant<value_int = {i}>() e{i} = Gather<axis = 1>(x, n{i}) c{i} = Unsqueeze(e{i}, one)
        h{i} = Gemm(c{i}, k{i}, b{i}) r{i} = Tanh(h{i}) p{i} = MatMul(r{i}, v{i})"""


def biased(i: int) -> str:
    """A layer that all share, but for its bias."""
    return f"g{i} = Gemm(x, w0, b{i}) m{i} = Mul(g{i}, s{i}) p{i} = MatMul(m{i}, v{i})"


def halved(i: int) -> str:
    return f"""h{i} = MatMul(x, u{i}) l{i}, r{i} = Split<axis = 1>(h{i}) g{i} = Sigmoid(r{i})
        p{i} = Mul(l{i}, g{i})"""


def told_as_another(i: int) -> str:
    """Exporters write weights that are equal to others so: here the first one's bias is that of the last."""
    return two_layers(i) if i else f"like = Identity(b5) {two_layers(0).replace('b0', 'like')}"


def of_its_own(i: int) -> str:
    return f"x{i} = Dropout(x) {two_layers(i).replace('x,', f'x{i},')}"


ONE = "one = Constant<value_ints = [1]>() "
SUM = "a1 = Add(p0, p1) a2 = Add(a1, p2) a3 = Add(a2, p3) a4 = Add(a3, p4) y = Add(a4, p5)"
SAME = "t = Constant<value = float[2, 3] {1, 2, 3, 4, 5, 6}>() "
CASES = {
    "of one value": networks(two_layers),
    "below each other": networks(two_layers, "y = Concat<axis = 0>(p0, p1, p2, p3, p4, p5)"),
    "of a column each": networks(column, more=ONE),
    "of a column two each": networks(lambda i: column(i, i // 2 * 2), more=ONE),
    "of columns in another order": networks(lambda i: column(i, 5 - i), more=ONE),
    "of some of the columns": networks(column, more=ONE, count=5),
    "of a column that is gathered": networks(gathered, more=ONE),
    "with a bias each behind a layer that all share": networks(biased),
    "added up": networks(two_layers, SUM),
    "added up with a bias": networks(
        two_layers, SUM.replace("y =", "a5 =") + " y = Add(a5, one)", more="one = Constant<value_floats = [1.0, 2.0]>()"
    ),
    "of older opsets": networks(two_layers, SUM, opset=11),
    "that normalize, with a layer that all share": networks(normed, more=SAME),
    "that normalize what was learned": networks(standardized),
    "of a value each": networks(of_its_own),
    "that halve what they make": networks(halved),
    "with a bias that is told as another's": networks(told_as_another),
    "before a number more": networks(two_layers, "y = Concat<axis = 1>(p0, p1, p2, p3, p4, p5, x)"),
    "between others": networks(column, "z = Exp(x) y = Concat<axis = -1>(x, p0, p1, p2, p3, p4, p5, z, x)", more=ONE),
    "of one number": networks(picked, more=ONE + "last = Constant<value_int = -1>()"),
}


@pytest.mark.parametrize("given", CASES.values(), ids=CASES)
def test_networks_of_one_make_are_computed_at_once(given: onnx.ModelProto) -> None:
    program = understand(load(given))
    made = ir.to_proto(program.model)
    onnx.checker.check_model(made, full_check=True)
    assert program.otherwise
    assert Counter(n.op_type for n in made.graph.node)["MatMul"] <= 2
    assert (made.graph.input, made.graph.output) == (given.graph.input, given.graph.output)
    for x in (X, np.zeros_like(X), 1e3 * X):
        (before,), (after,) = run(given, {"x": x}), run(made, {"x": x})
        np.testing.assert_allclose(before, after, rtol=1e-5, atol=1e-6)


def other(i: int) -> str:
    return two_layers(i) if i != 3 else two_layers(i).replace("Relu", "Tanh")


def wider(i: int) -> str:
    return two_layers(i) if i != 3 else "h3 = MatMul(x, u3) r3 = Slice(h3, none, three, one) p3 = MatMul(r3, v3)"


def zeros(i: int) -> str:
    return f"z{i} = Constant<value = float[1] {{{'-' * (i % 2)}0.0}}>() h{i} = Mul(x, z{i}) p{i} = Reciprocal(h{i})"


def summed(i: int) -> str:
    """Places of one value, multiplied and summed along one or the other of two axes of one size."""
    return f"""n{i} = Constant<value_int = {i % 3}>() e{i} = Gather<axis = 0>(t, n{i}) m{i} = Mul(e{i}, e{i})
        g{i} = Sigmoid(m{i}) along{i} = Constant<value_ints = [{i % 2}]>()
        p{i} = ReduceSum<keepdims = 0>(g{i}, along{i})"""


STACK = "parts = Constant<value_ints = [2, 3, 2]>() s = Reshape(x, parts) t = Transpose<perm = [1, 0, 2]>(s) "
STAYS = {
    "that sum along axes of their own": networks(
        summed, "c = Concat<axis = 0>(p0, p1, p2, p3, p4, p5) y = Unsqueeze(c, one)", more=STACK + ONE
    ),
    "few": networks(two_layers, count=2),
    "of as many rows as a symbol stands for": networks(normed, more=SAME, rows="n"),
    "of many rows": networks(normed, more=SAME, rows="9"),
    "that differ by the signs of zeros": networks(zeros),
    "one of which is of another make": networks(other),
    "one of which has other steps": networks(
        wider, more=ONE + "none = Constant<value_ints = [0]>() three = Constant<value_ints = [3]>()"
    ),
    "one of which is an output itself": networks(two_layers, more=""),
    "one of which reads what another makes": networks(
        lambda i: f"h{i} = Gemm({f'p{i - 1}' if i else 'x'}, q{i}, o{i}) p{i} = Tanh(h{i})"
    ),
    "that are one": networks(lambda i: two_layers(i % 3) if i < 3 else f"p{i} = Identity(p{i - 3})"),
}
STAYS["one of which is an output itself"].graph.output.append(
    onnx.helper.make_tensor_value_info("h2", onnx.TensorProto.FLOAT, [2, 3])
)


@pytest.mark.parametrize("given", STAYS.values(), ids=STAYS)
def test_others_stay(given: onnx.ModelProto) -> None:
    assert not understand(load(given)).otherwise


def test_what_no_number_is_in_stays_apart_from_the_others() -> None:
    given = CASES["of a column each"]
    x = X.copy()
    x[0, 2] = np.nan
    (before,), (after,) = (run(m, {"x": x}) for m in (given, ir.to_proto(understand(load(given)).model)))
    np.testing.assert_allclose(before, after, rtol=1e-5, atol=1e-6)
    assert 0 < np.isnan(after).sum() < after.size


def step(i: int) -> str:
    """What is made of a state and a column, where each state is made of the one before."""
    return f"""f{i} = Constant<value_ints = [{i}]>() t{i} = Constant<value_ints = [{i + 1}]>()
        c{i} = Slice(x, f{i}, t{i}, one) m{i} = Mul({f"z{i - 1}" if i else "first"}, c{i}) z{i} = Add(m{i}, c{i})
        r{i} = Tanh(z{i}) g{i} = Sigmoid(c{i}) p{i} = Mul(r{i}, g{i})"""


@pytest.mark.parametrize("first", ["ReduceMax<axes = [1]>(x)", "Constant<value = float[2, 1] {1.0, -1.0}>()"])
def test_what_steps_make_of_their_states_is_computed_at_once(first: str) -> None:
    given = networks(step, more=ONE + f"first = {first}")
    made = ir.to_proto(understand(load(given)).model)
    onnx.checker.check_model(made, full_check=True)
    counts = Counter(n.op_type for n in made.graph.node)
    assert (counts["Tanh"], counts["Sigmoid"]) == (1, 1)
    assert counts["Mul"] + counts["Add"] <= 13
    np.testing.assert_array_equal(run(given, {"x": X})[0], run(made, {"x": X})[0])
