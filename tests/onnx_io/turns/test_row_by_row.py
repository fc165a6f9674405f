"""Nodes that compute each row of a batch alone go into the turns of a Scan, and what does not stays; both compute the
same.
"""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from superopt.onnx_io import check, load, understand
from superopt.onnx_io.turns import choosing as module
from superopt.onnx_io.turns.row_by_row import row_by_row
from tests.onnx_io.models import model
from tests.onnx_io.networks import Array, run

ROWS = 3
DRAWN = np.random.default_rng(0)
X = DRAWN.standard_normal((ROWS, 4, 6, 6)).astype(np.float32)


def drawn(count: int) -> str:
    """So many small integers."""
    return "{" + ", ".join(str(i % 7 - 3) for i in range(count)) + "}"


HELD = f"""<float[4, 4, 3, 3] w = {drawn(144)}, float[4] b = {{1, -1, 2, 0.5}}, float[4] s = {{1, 2, 1, 3}},
  float[4, 1, 1] t = {{0.5, 2, -1, 3}}, float[1, 1, 6, 6] t2 = {drawn(36)}, float[3, 1, 1, 1] r3 = {{1, 2, 3}},
  float[2, 144] m = {drawn(288)}, float[2] two_b = {{1, -1}}, float zero = {{0}}, float tenth = {{0.1}},
  int8 n8 = {{3}}, float[4] scales = {{1, 1, 2, 2}}, int64[1] last = {{3}}, int64[1] first = {{0}},
  int64[1] one = {{1}},
  int64[1] two = {{2}}, int64[2] at = {{2, 0}}, int64 at0 = {{0}}, int64[2] halves = {{2, 2}},
  int64[3] shape = {{3, 12, 12}}, int64[3] open = {{-1, 12, 12}}, int64[3] kept = {{0, -1, 36}},
  int64[2] all = {{12, 36}}, int64[4] turned = {{4, 3, 6, 6}}, int64[8] pads = {{0, 0, 1, 1, 0, 0, 2, 0}},
  int64[8] more = {{1, 0, 0, 0, 0, 0, 0, 0}}>"""
APART = {  # what computes each row alone, of `x` and of maps `c` made of it, in the oldest opset that writes it so
    "conv": (9, "y = Conv<pads = [1, 1, 1, 1]>(c, w, b)"),
    "pool": (9, "y = MaxPool<kernel_shape = [2, 2]>(c)"),
    "mean-pool": (9, "y = AveragePool<kernel_shape = [3, 3]>(c)"),
    "global": (9, "y = GlobalAveragePool(c)"),
    "norm": (9, "y = BatchNormalization(c, b, b, b, s)"),
    "instances": (9, "y = InstanceNormalization(c, b, b)"),
    "LRN": (9, "y = LRN<size = 3>(c)"),
    "sum": (9, "y = Add(c, x)"),
    "scaled": (9, "y = Mul(c, t)"),
    "slope": (9, "y = PRelu(c, t)"),
    "clipped": (12, "y = Clip(c, zero)"),
    "shares": (11, "y = Softmax<axis = 1>(c)"),
    "last-shares": (13, "y = Softmax(c)"),
    "reduced": (13, "y = ReduceMean<axes = [2, 3]>(c)"),
    "reduced-apart": (18, "y = ReduceMax<keepdims = 0>(c, last)"),
    "joined": (11, "y = Concat<axis = -1>(c, x)"),
    "split": (13, "p, q = Split<axis = 1>(c, halves) y = Sub(p, q)"),
    "transposed": (9, "y = Transpose<perm = [0, 3, 1, 2]>(c)"),
    "reshaped": (9, "y = Reshape(c, shape)"),
    "reshaped-open": (9, "y = Reshape(c, open)"),
    "reshaped-kept": (9, "y = Reshape(c, kept)"),
    "flat": (9, "f = Flatten(c) y = Gemm<transB = 1>(f, m, two_b)"),
    "product": (9, "y = MatMul(c, x)"),
    "product-with-one": (9, "y = MatMul(c, t2)"),
    "product-of-one": (9, "y = MatMul(t2, c)"),
    "resized": (13, "y = Resize(c, , scales)"),
    "padded": (11, "y = Pad(c, pads)"),
    "cut": (10, "y = Slice(c, first, two, last)"),
    "dropped": (9, "y = Dropout(c)"),
    "squeezed": (13, "r = ReduceSum(c, last) y = Squeeze(r, last)"),
    "unsqueezed": (13, "y = Unsqueeze(c, last)"),
    "looked-up": (9, "y = Gather<axis = 2>(c, at)"),
    "largest": (13, "y, i = TopK(c, two)"),
    "quantized": (13, "q = QuantizeLinear(c, tenth, n8) y = DequantizeLinear(q, tenth, n8)"),
    "sampled": (16, "g = Slice(c, first, two, one) h = Transpose<perm = [0, 2, 3, 1]>(g) y = GridSample(x, h)"),
    "counted": (9, "s2 = Shape(c) n = Cast<to = 1>(s2) t5 = Gather(n, at0) y = Mul(c, t5)"),
    "to-depth": (9, "y = SpaceToDepth<blocksize = 2>(c)"),
}
MIXED = {  # what mixes rows, or makes something of how many there are
    "shares-of-rows": (13, "y = Softmax<axis = 0>(c)"),
    "old-shares-of-rows": (11, "y = Softmax<axis = 0>(c)"),
    "reduced-rows": (13, "y = ReduceMean<axes = [0]>(c)"),
    "reduced-all": (13, "y = ReduceMean(c)"),
    "joined-rows": (9, "y = Concat<axis = 0>(c, x)"),
    "turned-rows": (9, "y = Transpose<perm = [1, 0, 2, 3]>(c)"),
    "merged-rows": (9, "y = Reshape(c, all)"),
    "kept-with-others": (9, "r = Reshape(c, turned) y = Relu(r)"),
    "scaled-by-rows": (9, "y = Mul(c, r3)"),
    "product-of-rows": (11, "f = Flatten(c) y = Gemm<transA = 1>(f, f)"),
    "padded-rows": (11, "y = Pad(c, more)"),
    "cut-rows": (10, "y = Slice(c, first, two, first)"),
    "mean-of-all": (9, "y = MeanVarianceNormalization<axes = [0, 2, 3]>(c)"),
    "indices-of-all": (9, "p, y = MaxPool<kernel_shape = [2, 2]>(c)"),
    "norms-of-rows": (9, "y = LpNormalization<axis = 0>(c)"),
    "rows-looked-up": (9, "y = Gather(c, at)"),
}


def text(body: str, size: str = str(ROWS)) -> str:
    """A model of a convolution and some nodes behind it."""
    of = "int64[]" if "p, y" in body else "float[]"
    return f"g (float[{size}, 4, 6, 6] x) => ({of} y) {HELD} {{ c = Conv<pads = [1, 1, 1, 1]>(x, w, b) {body} }}"


def declared(text: str, opset: int) -> onnx.ModelProto:
    """A model whose outputs are of the sizes that ONNX infers."""
    return onnx.shape_inference.infer_shapes(model(text, opset), data_prop=True)


def turned(source: onnx.ModelProto, sizes: dict[str, int] | None = None) -> tuple[onnx.ModelProto, list[str]]:
    """The model with rows one after the other, which ONNX accepts, and what stands in a turn."""
    found = row_by_row(understand(load(source)), sizes or {})
    assert found is not None
    check(found)
    made = ir.to_proto(found)
    onnx.checker.check_model(made, full_check=True)
    (scan,) = [node for node in made.graph.node if node.op_type == "Scan"]
    return made, [node.op_type for node in scan.attribute[0].g.node if node.op_type != "Constant"]


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of small models as of large ones."""
    for name in ("LEAST_ELEMENTS", "LEAST_ROW", "LEAST_SHARE"):
        monkeypatch.setattr(module, name, 0)
    monkeypatch.setattr(module, "WEIGHED", 0)


def same(ours: list[Array], theirs: list[Array]) -> None:
    for one, other in zip(ours, theirs, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("opset", "body"), APART.values(), ids=APART)
def test_what_computes_each_row_alone_is_in_the_turns(opset: int, body: str) -> None:
    source = declared(text(body), opset)
    made, _ = turned(source)
    assert [node.op_type for node in made.graph.node if node.op_type != "Constant"] == ["Unsqueeze", "Scan", "Squeeze"]
    same(run(made, {"x": X}), run(source, {"x": X}))


@pytest.mark.parametrize(("opset", "body"), MIXED.values(), ids=MIXED)
def test_what_reads_several_rows_is_not(opset: int, body: str) -> None:
    source = declared(text(body), opset)
    made, within = turned(source)
    assert set(within) <= {"Conv", "Flatten"}
    same(run(made, {"x": X}), run(source, {"x": X}))


@pytest.mark.parametrize("rows", [1, 3, 0])
def test_a_symbolic_number_of_rows_may_be_any_also_none(rows: int) -> None:
    source = declared(text("y = Relu(c)", "N"), 9)
    made, within = turned(source, {"N": 16})
    assert within == ["Conv", "Relu"]
    assert made.graph.input == source.graph.input
    same(run(made, {"x": X[:rows]}), run(source, {"x": X[:rows]}))


def test_a_shape_that_is_told_by_the_number_of_rows_is_that_of_one() -> None:
    body = "u = Shape(x) n = Gather(u, first) v = Concat<axis = 0>(n, last2) y = Reshape(c, v)"
    source = declared(
        text(body, "N")
        .replace("float[] y", "float[N, 8, 18] y")
        .replace("<float", "<int64[2] last2 = {8, 18}, float", 1),
        13,
    )
    made, within = turned(source, {"N": 2})
    assert within == ["Conv", "Reshape"]
    same(run(made, {"x": X}), run(source, {"x": X}))


@pytest.mark.parametrize("sizes", [{}, {"N": 1}])
def test_one_row_stays_as_it_is(sizes: dict[str, int]) -> None:
    assert row_by_row(understand(load(declared(text("y = Relu(c)", "N"), 13))), sizes) is None


@pytest.mark.parametrize(("name", "most"), [("LEAST_ELEMENTS", 6 * 144 * 2), ("LEAST_ROW", 144 * 2)])
def test_few_elements_stay_as_they_are(monkeypatch: pytest.MonkeyPatch, name: str, most: int) -> None:
    monkeypatch.setattr(module, name, most)
    turned(declared(text("y = Relu(c)", "6"), 13))
    monkeypatch.setattr(module, name, most + 1)
    assert row_by_row(understand(load(declared(text("y = Relu(c)", "6"), 13))), {}) is None


def test_a_first_layer_before_large_weights_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WEIGHED", 1)
    given = "g (float[3, 8] x) => (float[3, 8] y)"
    layers = " ".join(f"h{i} = MatMul(h{i - 1}, w)" for i in range(1, 4))
    source = declared(f"{given} <float[8, 8] w = {drawn(64)}> {{ h0 = Relu(x) {layers} y = Relu(h3) }}", 13)
    assert turned(source)[1] == ["Relu"]
    monkeypatch.setattr(module, "LEAST_SHARE", 0.25)
    assert row_by_row(understand(load(source)), {}) is None


def test_large_weights_are_not_read_in_each_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WEIGHED", 1000)
    source = declared(
        f"g (float[3, 8] x) => (float[] y) <float[8, 2] w = {drawn(16)}> {{ h = Relu(x) y = MatMul(h, w) }}", 13
    )
    _, within = turned(source)
    assert within == ["Relu"]


def test_what_is_read_outside_too_is_given_by_the_turns() -> None:
    source = declared(text("r = Relu(c) q = ReduceMax(r) s2 = ReduceSum<keepdims = 0>(c) y = Add(q, s2)"), 13)
    made, within = turned(source)
    assert within == ["Conv", "Relu"]
    same(run(made, {"x": X}), run(source, {"x": X}))


def test_outputs_within_keep_their_names() -> None:
    source = declared(text("y = Relu(c)").replace("(float[] y)", "(float[] y, float[] c)"), 13)
    made, _ = turned(source)
    assert [v.name for v in made.graph.output] == ["y", "c"]
    same(run(made, {"x": X}), run(source, {"x": X}))


def test_weights_stand_within_and_once() -> None:
    made, _ = turned(declared(text("y = Relu(c)"), 13))
    (scan,) = [node for node in made.graph.node if node.op_type == "Scan"]
    assert sorted(i.name for i in scan.attribute[0].g.initializer) == ["b", "w"]
    assert not {"b", "w"} & {i.name for i in made.graph.initializer}


WAITING = {  # a node that reads rows, and beside them what has to wait for all rows
    "largest": ("float[3,4] x", "c = Relu(x) m = ReduceMax<keepdims = 1>(c) y = Sub(c, m)", 13),
    "size": (
        "float[N,S,4] x",
        "c = Relu(x) e = Shape(c) t = Slice(e, one, two) f = Cast<to = 1>(t) y = Div(c, f)",
        13,
    ),
    "quantized": ("float[3,4] x", "r = Relu(x) q, e, z = DynamicQuantizeLinear(r) y = Mul(r, e)", 13),
    "captured": (
        "float[3,4] x",
        """c = Relu(x) l = ReduceMax<keepdims = 0>(c) z = Greater(l, zero)
      i = If(z) <then_branch = a () => (float[3, 4] u) { u = Neg(c) },
        else_branch = b () => (float[3, 4] v) { v = Abs(c) }>
      y = Add(i, c)""",
        13,
    ),
    "cast": (
        "float[3,4] x",
        "c = Relu(x) m = ReduceMax<keepdims = 1>(c) p = Cast<to = 10>(m) e = Cast<to = 1>(p) y = Sub(c, e)",
        13,
    ),
    "trained": ("float[3,4] x", "r = Relu(x) y, m, v, sm, sv = BatchNormalization(r, s, s, s, s)", 9),
    "blocks": ("uint8[3,8] x", "r = Identity(x) y = DequantizeLinear<axis = 1, block_size = 4>(r, k)", 21),
    "factors": ("float[3,2,4] x", "r = Relu(x) y = LayerNormalization<axis = -1>(r, f3)", 17),
    "divided": ("int64[N,4] x, int64[N,4] z", "r = Neg(x) y = Div(r, z)", 13),
    "remainder": ("int64[N,4] x, int64[N,4] z", "r = Neg(x) y = Mod(r, z)", 13),
    "perhaps-empty": ("int64[N,4] x, float[M,2] t", "r = Neg(x) n = Neg(r) y = Gather(t, n)", 13),
}
"""What cannot go into turns, with another node before it that can."""


@pytest.mark.parametrize(("given", "body", "opset"), WAITING.values(), ids=WAITING)
def test_what_waits_for_all_rows_or_may_fail_for_none_stays(given: str, body: str, opset: int) -> None:
    held = f"""<float[4] s = {{1, 1, 2, 2}}, float[3, 2] k = {drawn(6)}, float[3, 1, 4] f3 = {drawn(12)},
      float zero = {{0}}, int64[1] one = {{1}}, int64[1] two = {{2}}>"""
    source = declared(f"g ({given}) => (float[] y) {held} {{ {body} }}".replace("float[] y", of(given, body)), opset)
    _, within = turned(source, {"N": 3, "M": 3, "S": 2})
    assert set(within) <= {"Relu", "Identity", "Neg"}


def of(given: str, body: str) -> str:
    """How an output is declared."""
    is_integer = given.startswith("int64") and "Gather" not in body
    return "int64[] y" if is_integer else "float[] y"


def test_a_chain_of_constants_may_be_long() -> None:
    chain = "c0 = Neg(w) " + " ".join(f"c{i} = Neg(c{i - 1})" for i in range(1, 1500))
    source = declared(
        f"g (float[3, 4] x) => (float[] y) <float[4] w = {{1, 2, 3, 4}}> {{ {chain} y = Add(x, c1499) }}", 13
    )
    assert row_by_row(understand(load(source)), {}) is not None


def test_words_stay() -> None:
    body = "{ a = Identity(x) b, c = Split<axis = 1>(a) y = Concat<axis = 1>(c, b) }"
    source = model(f"g (string[N, 4] x) => (string[N, 4] y) {body}", 11)
    assert row_by_row(understand(load(source)), {"N": 64}) is None


@pytest.mark.parametrize("size", ["3", "N"])
def test_forms_of_an_opset_before_loops_over_rows_stay(size: str) -> None:
    body = "{ r = Relu(x) y = Upsample<scales = [1.0, 1.0, 2.0, 2.0]>(r) }"
    source = model(f"g (float[{size}, 4, 2, 2] x) => (float[{size}, 4, 4, 4] y) {body}", 8)
    assert row_by_row(understand(load(source)), {"N": 3}) is None


def test_casts_at_the_ends_stay_outside() -> None:
    body = "{ a = Cast<to = 1>(x) b = Relu(a) y = Cast<to = 10>(b) }"
    source = model(f"g (float16[3, 4] x) => (float16[3, 4] y) {body}", 13)
    made, within = turned(source)
    assert within == ["Relu"]
    x = {"x": DRAWN.standard_normal((3, 4)).astype(np.float16)}
    same(run(made, x), run(source, x))


@pytest.mark.parametrize("rows", [3, 0])
def test_a_symbolic_number_of_rows_may_be_cast_first(rows: int) -> None:
    body = "{ a = Cast<to = 1>(x) b = Relu(a) y = Cast<to = 10>(b) }"
    source = model(f"g (float16[N, 4] x) => (float16[N, 4] y) {body}", 13)
    made, within = turned(source, {"N": 3})
    assert within == ["Relu"]
    x = {"x": DRAWN.standard_normal((rows, 4)).astype(np.float16)}
    same(run(made, x), run(source, x))


def test_what_is_cast_to_an_output_and_read_again_waits_for_all_rows() -> None:
    body = "{ c = Relu(x) m = ReduceMax<keepdims = 1>(c) p = Cast<to = 10>(m) e = Cast<to = 1>(p) y = Sub(c, e) }"
    source = model(f"g (float[3, 4] x) => (float[3, 4] y, float16[1, 1] p) {body}", 13)
    made, within = turned(source)
    assert within == ["Relu"]
    x = {"x": X[:, :, 0, 0]}
    same(run(made, x), run(source, x))
