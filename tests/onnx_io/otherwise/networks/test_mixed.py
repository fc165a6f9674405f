"""What several layers give is mixed before these, and the result is the same."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.onnx_io.models import model
from tests.onnx_io.networks import Array
from tests.onnx_io.otherwise.reading import gain, operators_of

ROWS, INNER, WIDTH = 5, 4, 24


def mixture(
    layer: str,
    shares: str = "s = Softmax<axis = 1>(g)",
    end: str = "y = Squeeze(p, last)",
    count: int = 3,
    more: str = "",
) -> onnx.ModelProto:
    """A model that mixes what layers make of parts of x, by weights of g."""
    nodes = "".join(
        f"f{i} = Constant<value_ints = [{INNER * i}]>() t{i} = Constant<value_ints = [{INNER * (i + 1)}]>() "
        f"v{i} = Slice(x, f{i}, t{i}, one) {layer.format(i=i)} c{i} = Unsqueeze(o{i}, last) "
        for i in range(count)
    )
    stack = ", ".join(f"c{i}" for i in range(count))
    made = model(
        f"g (float[n, {INNER * count}] x, float[n, {WIDTH}] z, float[n, {count}, 1] g) => (float[n, {WIDTH}] y) "
        f"<int64[1] one = {{1}}, int64[1] last = {{-1}}> "
        f"{{ {nodes} a = Concat<axis = 2>({stack}) {shares} p = MatMul(a, s) {end} {more} }}",
        17,
    )
    rng, used = np.random.default_rng(0), {name for node in made.graph.node for name in node.input}
    shapes = {f"u{i}": (INNER, WIDTH) for i in range(count)} | {f"w{i}": (WIDTH, INNER) for i in range(count)}
    for name, shape in (shapes | {"b": (WIDTH,)} | {f"b{i}": (1, WIDTH) for i in range(count)}).items():
        if name in used:
            made.graph.initializer.append(numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32), name))
    return made


def feeds(count: int = 3) -> dict[str, Array]:
    rng, shapes = np.random.default_rng(1), {"x": (ROWS, INNER * count), "z": (ROWS, WIDTH), "g": (ROWS, count, 1)}
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


LAYERS = {
    "products": "o{i} = MatMul(v{i}, u{i})",
    "with what all add": "m{i} = MatMul(v{i}, u{i}) o{i} = Add(m{i}, b)",
    "with what each adds": "m{i} = MatMul(v{i}, u{i}) o{i} = Add(b{i}, m{i})",
    "Gemm": "o{i} = Gemm(v{i}, u{i}, b)",
    "transposed": "o{i} = Gemm<transB = 1>(v{i}, w{i}, b)",
    "scaled": "m{i} = MatMul(v{i}, u{i}) a{i} = Add(m{i}, b) o{i} = Mul(z, a{i})",
    "scaled behind": "m{i} = MatMul(v{i}, u{i}) o{i} = Mul(m{i}, z)",
}


@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
@pytest.mark.parametrize("shares", ["s = Softmax<axis = 1>(g)", "s = Identity(g)", "s = Softmax<axis = 2>(g)"])
def test_layers_are_mixed_before(layer: str, shares: str) -> None:
    found = operators_of(mixture(layer, shares), feeds())
    assert found.count("MatMul") + found.count("Gemm") <= 2


def test_two_are_enough() -> None:
    assert operators_of(mixture("o{i} = MatMul(v{i}, u{i})", count=2), feeds(2)).count("MatMul") == 1


LEFT = {
    "layers that bend": mixture("m{i} = MatMul(v{i}, u{i}) o{i} = Tanh(m{i})"),
    "scales of several": mixture("m{i} = MatMul(v{i}, u{i}) e{i} = Exp(z) o{i} = Mul(m{i}, e{i})"),
    "what is scaled after it is read": mixture("m{i} = MatMul(v{i}, u{i}) o{i} = Mul(m{i}, m{i})"),
    "what something else reads": mixture(
        "o{i} = MatMul(v{i}, u{i})", end="e = Squeeze(p, last) r = Sum(o0, o1, o2)", more="y = Add(e, r)"
    ),
    "a Gemm that scales": mixture("o{i} = Gemm<alpha = 2.0>(v{i}, u{i}, b)"),
}


@pytest.mark.parametrize("source", LEFT.values(), ids=LEFT)
def test_others_are_left(source: onnx.ModelProto) -> None:
    found = operators_of(source, feeds())
    assert found.count("MatMul") + found.count("Gemm") == 4


def test_a_mixture_of_experts_is_faster_and_the_same() -> None:
    """As DCN-Mix has it: experts of low rank, of columns."""
    experts = "".join(
        f"h{i} = MatMul(v{i}, c) t{i} = Tanh(h{i}) m{i} = MatMul(u{i}, t{i}) a{i} = Add(m{i}, b) p{i} = Mul(c, a{i}) "
        f"q{i} = Squeeze(p{i}, two) o{i} = Unsqueeze(q{i}, two) g{i} = MatMul(x, k{i}) e{i} = Unsqueeze(g{i}, two) "
        for i in range(4)
    )
    given = model(
        f"g (float[64, 128] x) => (float[64, 128] y) <int64[1] two = {{2}}> {{ c = Unsqueeze(x, two) {experts} "
        "o = Concat<axis = 2>(o0, o1, o2, o3) e = Concat<axis = 1>(e0, e1, e2, e3) s = Softmax<axis = 1>(e) "
        "m = MatMul(o, s) r = Add(m, c) y = Squeeze(r, two) }",
        17,
    )
    rng = np.random.default_rng(0)
    shapes = {"b": (128, 1)} | {f"v{i}": (16, 128) for i in range(4)} | {f"u{i}": (128, 16) for i in range(4)}
    for name, shape in (shapes | {f"k{i}": (128, 1) for i in range(4)}).items():
        data = rng.standard_normal(shape).astype(np.float32) / 8
        given.graph.initializer.append(numpy_helper.from_array(data, name))
    x = {"x": rng.standard_normal((64, 128)).astype(np.float32)}
    operators_of(given, x)
    assert gain(given, x) > 1.5
