"""Every kind of model is read, understood where it can be, written anew and run: same results, same interface."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from superopt.onnx_io import check, load, rewritten, understand
from tests.onnx_io.models import model, terms
from tests.onnx_io.networks import run

Feed = dict[str, Any]


def written(source: onnx.ModelProto | Path) -> onnx.ModelProto:
    """The model with all that is understood written anew."""
    program = understand(load(source))
    made = rewritten(program, {n: t for n, t in terms(program).items() if n in program.values}, {})
    check(made)
    return ir.to_proto(made)


def assert_same_interface(made: onnx.ModelProto, source: onnx.ModelProto) -> None:
    """Names, order, types, sizes and texts of inputs and outputs, and what is said of the whole."""
    assert list(made.graph.input) == list(source.graph.input)
    assert list(made.graph.output) == list(source.graph.output)
    assert {o.domain: o.version for o in made.opset_import} == {o.domain: o.version for o in source.opset_import}
    assert made.metadata_props == source.metadata_props
    for field in ("ir_version", "doc_string", "producer_name", "producer_version", "domain", "model_version"):
        assert getattr(made, field) == getattr(source, field)
    assert (made.graph.name, made.graph.doc_string) == (source.graph.name, source.graph.doc_string)


def assert_carried(source: onnx.ModelProto, feed: Feed) -> onnx.ModelProto:
    """That a model written anew gives the same bits under the same interface; gives it."""
    source.doc_string, source.graph.doc_string, source.producer_name = "the model", "the graph", "someone"
    source.metadata_props.add(key="licence", value="mine")
    for info in (*source.graph.input, *source.graph.output):
        info.doc_string = f"of {info.name}"
    made = written(source)
    assert_same_interface(made, source)
    assert_same_bits(run(made, feed), run(source, feed))
    return made


def assert_same_bits(actual: list[Any], expected: list[Any]) -> None:
    """Signs of zeros too; any NaN is like any other, since arithmetic may choose."""
    assert len(actual) == len(expected) > 0
    for a, e in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(a, e, strict=True)
        if e.dtype.kind == "f":
            numbers = ~np.isnan(e)
            np.testing.assert_array_equal(np.signbit(a[numbers]), np.signbit(e[numbers]))


X: Feed = {"x": np.array([-1.5, 2], np.float32)}
SIX: Feed = {"x": np.arange(6, dtype=np.float32).reshape(2, 3) - 2}
CARRIED: dict[str, tuple[str, Feed]] = {
    "an output that is an input": ("g (float[2] x) => (float[2] x, float[2] y) { y = Relu(x) }", X),
    "only an output that is an input": ("g (float[2] x) => (float[2] x) { y = Relu(x) }", X),
    "an output that is an initializer": (
        "g (float[2] x) => (float[2] w, float[2] y) <float[2] w = {1, -2}> { y = Add(x, w) }",
        X,
    ),
    "an output that is another": (
        "g (float[2] x) => (float[2] y, float[2] z, float[2] v) { y = Relu(x) z = Identity(y) v = Identity(x) }",
        X,
    ),
    "an output that is there twice": ("g (float[2] x) => (float[2] y, float[2] y) { y = Relu(x) }", X),
    "empty optional inputs": (
        """g (float[2] x) => (float[2] y, float[2] z) <float m = {1}, float l = {0}>
        { y = Clip(x, , m) z = Clip(x, l, ) }""",
        X,
    ),
    "an empty input of a recurrence": (
        """g (float[1, 1, 2] x) => (float[1, 1, 1, 1] y) <float[1, 1, 2] w = {1, 2}, float[1, 1, 1] r = {3},
        float[1, 1, 1] h = {4}> { y = RNN<hidden_size = 1>(x, w, r, , , h) }""",
        {"x": np.ones((1, 1, 2), np.float32)},
    ),
    "a size of 0": (
        """g (float[0, 3] x, float[2, 3] z) => (float[0, 3] y, float[2, 3] c)
        <float[3] w = {1, 2, 3}> { a = Add(x, w) y = Relu(a) b = Concat<axis = 0>(y, z) c = Mul(b, w) }""",
        {"x": np.zeros((0, 3), np.float32), "z": SIX["x"]},
    ),
    "symbolic sizes": (
        """g (float[N, C] x, float[N, C] z) => (float[N, C] y, float[C, N] t)
        { a = Add(x, z) y = Relu(a) t = Transpose<perm = [1, 0]>(y) }""",
        SIX | {"z": SIX["x"]},
    ),
    "a reshape to -1 and 0": (
        """g (float[N, 3] x) => (float[M] y, float[N, 3, 1] z) <int64[1] all = {-1}, int64[3] as = {0, -1, 1}>
        { a = Relu(x) y = Reshape(a, all) z = Reshape(a, as) }""",
        SIX,
    ),
    "a weight that several share": (
        """g (float[2] x) => (float[2] y, float[2] z) <float[2] w = {2, 3}>
        { a = Add(x, w) y = Mul(a, w) z = Sub(w, a) }""",
        X,
    ),
    "a branch that captures what is rewritten": (
        """g (bool c, float[2] x) => (float[2] y) <float[2] w = {1, 2}>
        { relu_1 = Add(x, w) b = Relu(relu_1) y = If(c) <
            then_branch = then () => (float[2] t) { add_1 = Add(b, w) t = Mul(add_1, relu_1) },
            else_branch = other () => (float[2] e) { e = Identity(b) }> }""",
        X | {"c": np.array(True)},
    ),
    "a branch within a branch that captures": (
        """g (bool c, float[2] x) => (float[2] y) { a = Relu(x) y = If(c) <
            then_branch = then () => (float[2] t) { t = If(c) <
                then_branch = inner () => (float[2] i) { i = Add(a, x) },
                else_branch = outer () => (float[2] o) { o = Relu(x) }> },
            else_branch = other () => (float[2] e) { e = Identity(x) }> }""",
        X | {"c": np.array(True)},
    ),
    "a loop that captures": (
        """g (int64 n, float[2] x) => (float[2] y) <bool go = {1}>
        { a = Relu(x) y = Loop(n, go, a) <body = b (int64 i, bool c, float[2] s) => (bool d, float[2] r)
            { d = Identity(c) r = Add(s, a) }> }""",
        X | {"n": np.array(3)},
    ),
    "a scan that captures": (
        """g (float[2] x, float[3, 2] z) => (float[2] y, float[3, 2] v) { a = Relu(x)
        y, v = Scan<num_scan_inputs = 1, body = b (float[2] s, float[2] i) => (float[2] r, float[2] o)
            { r = Add(s, i) o = Mul(r, a) }>(a, z) }""",
        X | {"z": np.arange(6, dtype=np.float32).reshape(3, 2)},
    ),
    "a clip whose least is above its most": (
        "g (float[2] x) => (float[2] y) <float l = {3}, float m = {1}> { a = Clip(x, l, m) y = Neg(a) }",
        X,
    ),
    "a constant clip whose least is above its most": (
        """g (float[2] x) => (float[2] y) <float[2] w = {0, 4}, float l = {3}, float m = {1}>
        { a = Clip(w, l, m) y = Add(x, a) }""",
        X,
    ),
    "a mask of a dropout that is used": (
        "g (float[2] x) => (float[2] y, bool[2] m) { a = Relu(x) b, m = Dropout(a) y = Relu(b) }",
        X,
    ),
    "the least integer plus one, and the like": (
        """g (float[1] x, int32[1] i, int64[1] j) => (float[1] y, int32[1] s, int64[1] t, int64[1] u, int32[1] v)
        <int32[1] p = {2147483647}, int64[1] q = {9223372036854775807}, int32[1] one = {1}, int64[1] three = {3}>
        { a = Add(p, one) b = Cast<to = 1>(a) y = Add(x, b) s = Add(i, p) t = Mul(j, q) u = Mul(q, three)
          c = Mul(p, p) v = Sub(c, one) }""",
        {"x": np.zeros(1, np.float32), "i": np.array([7], np.int32), "j": np.array([5])},
    ),
    "an integer that no 64-bit float is": (
        """g (int64[1] j) => (int64[1] y, int64[1] z) <int64[1] q = {9007199254740993}, int64[1] one = {1}>
        { a = Add(q, one) b = Sub(a, one) y = Add(j, b) z = Mul(b, j) }""",
        {"j": np.array([3])},
    ),
    "what overflows in 32 bits only": (
        """g (float[1] x) => (float[1] y) <float[1] w = {1e38}, float[1] ten = {10}, float[1] less = {0.01}>
        { a = Mul(w, ten) b = Mul(a, less) y = Add(x, b) }""",
        {"x": np.zeros(1, np.float32)},
    ),
    "float16": (
        "g (float16[2] x) => (float16[2] y) <float16[2] w = {1, 2}> { a = Add(x, w) y = Relu(a) }",
        {"x": np.array([-1.5, 2], np.float16)},
    ),
    "integers and truth values": (
        """g (int8[2] x, uint8[2] u) => (bool[2] y, int32[2] z) <int8[2] w = {1, 2}>
        { y = Less(x, w) a = Cast<to = 6>(u) z = Add(a, a) }""",
        {"x": np.array([1, 1], np.int8), "u": np.array([200, 255], np.uint8)},
    ),
    "a quantized product": (
        """g (float[2, 2] x) => (float[2, 2] y) <float s = {0.1}, uint8 z = {128}, int8[2, 2] k = {1, -2, 3, 4},
        float t = {0.5}, int8 n = {0}> { a = QuantizeLinear(x, s, z) b = DequantizeLinear(a, s, z)
          w = DequantizeLinear(k, t, n) c = MatMul(b, w) d = Relu(c) e = QuantizeLinear(d, s, z)
          y = DequantizeLinear(e, s, z) }""",
        {"x": np.array([[-1, 0.33], [2, 30]], np.float32)},
    ),
}


@pytest.mark.parametrize(("text", "feed"), CARRIED.values(), ids=CARRIED)
def test_it_computes_the_same_under_the_same_interface(text: str, feed: Feed) -> None:
    assert_carried(model(text), feed)
