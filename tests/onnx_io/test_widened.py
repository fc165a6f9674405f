"""Models of 16-bit floats with what they compute in 32 bits: the same interface, the same weights, the same values."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, numpy_helper

from benchmarks.halves import half
from superopt.onnx_io import check, load, widened
from tests.models import normalized
from tests.onnx_io.models import model
from tests.onnx_io.networks import run
from tests.onnx_io.test_carried import assert_same_interface

WEIGHT = np.random.default_rng(1).standard_normal((4, 4)).astype(np.float16)
X = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float16)

CASES = {
    "a chain": "g (float16[N, 4] x) => (float16[N, 4] y) { a = MatMul(x, w) b = Relu(a) y = Softmax(b) }",
    "a cast to 32 bits and back": """g (float16[3, 4] x) => (float16[3, 4] y) {
        a = MatMul(x, w) b = Cast<to=1>(a) c = Exp(b) d = Cast<to=10>(c) y = Add(d, x) }""",
    "32 bits outside": """g (float[3, 4] x) => (float[3, 4] y) {
        a = Cast<to=10>(x) b = MatMul(a, w) c = Relu(b) y = Cast<to=1>(c) }""",
    "a constant node": """g (float16[3, 4] x) => (float16[3, 4] y) {
        c = Constant<value = float16[1] {16384}>() d = Mul(x, c) y = MatMul(d, w) }""",
    "a fill": """g (float16[3, 4] x) => (float16[3, 4] y) {
        s = Shape(x) z = ConstantOfShape<value = float16[1] {16384}>(s) a = Add(z, x) y = MatMul(a, w) }""",
    "an output that is read": """g (float16[3, 4] x) => (float16[3, 4] a, float16[3, 4] y) {
        a = MatMul(x, w) y = Relu(a) }""",
    "an output that is the input": "g (float16[3, 4] x) => (float16[3, 4] a) { b = Relu(x) a = Identity(x) }",
    "truth values and integers": """g (float16[3, 4] x) => (int64[3] i, bool[3, 4] t) {
        a = MatMul(x, w) i = ArgMax<axis=1, keepdims=0>(a) t = Less(a, x) }""",
    "a cast like another": """g (float16[3, 4] x, float[3, 4] z) => (float16[3, 4] y) {
        c = CastLike(z, x) a = MatMul(c, w) y = Add(a, x) }""",
    "branches": """g (float16[3, 4] x, bool t) => (float16[3, 4] y) {
        a = MatMul(x, w)
        y = If(t) <
            then_branch = one () => (float16[3, 4] p) { p = Mul(a, x) },
            else_branch = two () => (float16[3, 4] q) {
                c = Constant<value = float16[1] {16384}>() r = Cast<to=1>(a) s = Cast<to=10>(r) q = Add(s, c) }> }""",
    "a sequence": """g (float16[3, 4] x) => (float16[3, 4] y) <seq(float16[3, 4]) s> {
        s = SequenceConstruct(x, x) i = Constant<value = int64 {0}>() a = SequenceAt(s, i) y = Relu(a) }""",
    "a scan": """g (float16[4] x, float16[3, 4] z) => (float16[4] y, float16[3, 4] all) {
        y, all = Scan<num_scan_inputs = 1, body = b (float16[4] before, float16[4] i) => (float16[4] n, float16[4] o) {
            p = MatMul(before, w) n = Add(p, i) o = Identity(n) }>(x, z) }""",
}


def of(text: str, opset: int = 17) -> onnx.ModelProto:
    made = model(text, opset)
    made.graph.initializer.append(numpy_helper.from_array(WEIGHT, "w"))
    made.metadata_props.add(key="licence", value="mine")
    return made


def feed(given: onnx.ModelProto) -> dict[str, Any]:
    dtypes = {TensorProto.FLOAT16: np.float16, TensorProto.FLOAT: np.float32, TensorProto.BOOL: np.bool_}
    found = {}
    for info in given.graph.input:
        shape = [d.dim_value or 3 for d in info.type.tensor_type.shape.dim]
        found[info.name] = np.resize(X, shape).astype(dtypes[info.type.tensor_type.elem_type])
    return found


def in_32_bits(given: onnx.ModelProto) -> onnx.ModelProto:
    """A model in 32 bits, which is asserted to be valid, to have the same interface, and to give the same."""
    wide = widened(load(given))
    assert wide is not None
    check(wide)
    made = ir.to_proto(wide)
    assert_same_interface(made, given)
    seen = 0
    for actual, expected in zip(run(made, feed(given)), run(given, feed(given)), strict=True):
        assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
        np.testing.assert_allclose(actual, expected, rtol=4e-3, atol=4e-3)
        seen += actual.size
    assert seen
    return made


@pytest.mark.parametrize("case", CASES)
def test_a_model_in_32_bits_gives_what_it_gave_in_16_under_the_same_interface(case: str) -> None:
    made = in_32_bits(of(CASES[case]))
    assert any(node.op_type == "Cast" for node in made.graph.node)


@pytest.mark.parametrize("case", CASES)
def test_only_casts_read_or_give_16_bits(case: str) -> None:
    wide = widened(load(of(CASES[case])))
    assert wide is not None
    inferred = onnx.shape_inference.infer_shapes(ir.to_proto(wide), strict_mode=True)
    tensors = (*inferred.graph.value_info, *inferred.graph.input, *inferred.graph.output)
    halves = {i.name for i in tensors if i.type.tensor_type.elem_type == TensorProto.FLOAT16}
    halves |= {t.name for t in inferred.graph.initializer if t.data_type == TensorProto.FLOAT16}
    touching = {n.op_type for n in inferred.graph.node if halves.intersection((*n.input, *n.output))}
    assert halves
    assert touching <= {"Cast", "Constant"}


def test_weights_stay_as_they_are_stored() -> None:
    given = half(normalized())
    wide = widened(load(given))
    assert wide is not None
    made = ir.to_proto(wide)
    assert list(made.graph.initializer) == list(given.graph.initializer)
    assert len(made.graph.initializer) == 3


def test_the_model_itself_is_left_as_it_was() -> None:
    given = load(half(normalized()))
    before = ir.to_proto(given).SerializeToString()
    assert widened(given) is not None
    assert ir.to_proto(given).SerializeToString() == before


LEFT = {
    "32 bits": "g (float[3, 4] x) => (float[3, 4] y) { y = Relu(x) }",
    "nothing but casts": "g (float[3, 4] x) => (float[3, 4] y) { a = Cast<to=10>(x) y = Cast<to=1>(a) }",
    "an operator that nobody knows": "g (float16[3, 4] x) => (float16[3, 4] y) { a = custom.Own(x) y = Relu(a) }",
    "a sequence that comes out": """g (float16[3, 4] x) => (seq(float16[3, 4]) s) {
        a = Relu(x) s = SequenceConstruct(a, x) }""",
}


@pytest.mark.parametrize("case", LEFT)
def test_what_cannot_be_told_apart_is_left_in_16_bits(case: str) -> None:
    assert widened(load(of(LEFT[case]))) is None


def test_before_ir_4_where_weights_are_inputs_a_model_is_left_in_16_bits() -> None:
    assert widened(load(half(normalized(opset=9, ir=3)))) is None
