"""Keys that a constant mask hides from queries are not attended to: these stand in blocks that see the same."""

from __future__ import annotations

import math

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from onnx import numpy_helper

from superopt.onnx_io import load, understand
from superopt.onnx_io.otherwise.attention.blocks import Costs, Seen, blocks_of
from tests.onnx_io.models import model
from tests.onnx_io.networks import run

COUNT, WIDTH = 256, 16
LOWEST = float(np.finfo(np.float32).min)
BEFORE = np.tril(np.ones((COUNT, COUNT), bool))
NEAR = BEFORE & ~np.tril(BEFORE, -32)
CHUNK = np.kron(np.eye(8, dtype=bool), np.ones((32, 32), bool))

ADDED = "masked = Add(scores, mask)"
PLAIN = "shares = Softmax<axis = -1>(masked)"


def attention(
    mask: np.ndarray,
    step: str = ADDED,
    softmax: str = PLAIN,
    queries: str | int = COUNT,
    more: str = "",
    opset: int = 17,
    given: str = "",
) -> onnx.ModelProto:
    """Attention of four heads, as exporters write it out, with a mask as a weight."""
    sizes = f"2, 4, {queries}, {WIDTH}"
    text = f"""g (float[{sizes}] q, float[2, 4, {COUNT}, {WIDTH}] k, float[2, 4, {COUNT}, {WIDTH}] v{more})
        => (float[{sizes}] y{given}) <float quarter = {{0.25}}, float low = {{{LOWEST}}}, float zero = {{0}}> {{
        turned = Transpose<perm = [0, 1, 3, 2]>(k)
        product = MatMul(q, turned) scores = Mul(product, quarter)
        {step} {softmax} y = MatMul(shares, v) }}"""
    made = model(text, opset)
    if not any(i.name == "mask" for i in made.graph.input):
        made.graph.initializer.append(numpy_helper.from_array(mask, "mask"))
    return made


def low(seen: np.ndarray, lowest: float = -np.inf) -> np.ndarray:
    return np.where(seen, np.float32(0), np.float32(lowest))


def scores(given: onnx.ModelProto) -> list[int]:
    """How many shares each softmax gives, of one head."""
    inferred = onnx.shape_inference.infer_shapes(given, data_prop=True)
    known = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in inferred.graph.value_info}
    return [math.prod(known[n.output[0]][-2:]) for n in given.graph.node if n.op_type == "Softmax"]


IN_BLOCKS = {
    "what comes later, by minus infinity": attention(low(BEFORE)),
    "by the lowest number": attention(low(BEFORE, LOWEST)),
    "by a great negative number": attention(low(BEFORE, -1e9)),
    "what is far": attention(low(NEAR, -1e9)[None, None]),
    "other chunks": attention(low(CHUNK)[None]),
    "of one query": attention(low(np.broadcast_to(CHUNK[:1], (1, COUNT)))),
    "chosen by truth values": attention(BEFORE, "masked = Where(mask, scores, low)"),
    "chosen by what is hidden": attention(~BEFORE[None, None], "masked = Where(mask, low, scores)"),
    "no lower than the lowest": attention(low(BEFORE, LOWEST), "sum = Add(scores, mask) masked = Max(sum, low)"),
    "beside another mask": attention(
        low(BEFORE, LOWEST), "t = Constant<value = float {-0.5}>() near = Add(scores, t) masked = Add(mask, near)"
    ),
    "in each head another": attention(low(np.stack([BEFORE, NEAR, NEAR, BEFORE]))),
    "with heads in the batch": attention(
        low(BEFORE),
        f"to = Constant<value_ints = [8, {COUNT}, {COUNT}]>() sum = Add(scores, mask) masked = Reshape(sum, to)",
        f"flat = Softmax<axis = -1>(masked) back = Constant<value_ints = [2, 4, {COUNT}, {COUNT}]>() "
        "shares = Reshape(flat, back)",
    ),
    "without what is no number": attention(
        low(BEFORE), softmax="each = Softmax<axis = -1>(masked) none = IsNaN(each) shares = Where(none, zero, each)"
    ),
    "before softmax had a default axis at the end": attention(
        low(BEFORE), softmax="shares = Softmax<axis = 3>(masked)", opset=11
    ),
}


@pytest.mark.parametrize("given", IN_BLOCKS.values(), ids=IN_BLOCKS)
def test_attention_is_computed_of_the_keys_that_its_mask_does_not_hide(given: onnx.ModelProto) -> None:
    written = ir.to_proto(understand(load(given)).model)
    assert sum(scores(written)) <= 0.8 * COUNT * COUNT
    drawn = np.random.default_rng(0)
    feeds = {i.name: drawn.standard_normal((2, 4, COUNT, WIDTH)).astype(np.float32) for i in given.graph.input}
    for ours, theirs in zip(run(written, feeds), run(given, feeds), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


SHARES = "p = Softmax<axis = -1>(masked) few = Constant<value = float {0.01}>()"
RAISED = "up = Constant<value = float {1e9}>() sum = Add(scores, mask) masked = Add(sum, up)"
ONE_ROW = np.where(np.arange(4)[:, None, None] == 1, CHUNK & (np.arange(COUNT) != 5)[:, None], CHUNK)

STAYS = {
    "where nothing is hidden": attention(low(np.ones((COUNT, COUNT), bool))),
    "where little is hidden": attention(low(BEFORE | (np.arange(COUNT) < 240))),
    "where a share may be left": attention(low(BEFORE, -1e4)),
    "where a query sees nothing": attention(low(NEAR & (np.arange(COUNT) > 0)[:, None], -1e9)),
    "where the mask is given": attention(low(BEFORE), more=f", float[{COUNT}, {COUNT}] mask"),
    "where something given is added too": attention(
        low(BEFORE), "sum = Add(scores, mask) masked = Add(sum, more)", more=f", float[1, {COUNT}] more"
    ),
    "along queries": attention(low(BEFORE), softmax="shares = Softmax<axis = 2>(masked)"),
    "with shares of all": attention(low(BEFORE), softmax="shares = Softmax<axis = 1>(masked)", opset=11),
    "of as many queries as there are": attention(low(BEFORE[:1]), queries="n"),
    "where shares are read by more": attention(
        low(BEFORE), softmax=f"{PLAIN} sum = ReduceSum(shares)", given=", float[a, b, c, d] sum"
    ),
    "where something is added to shares": attention(low(BEFORE), softmax=f"{SHARES} shares = Add(p, few)"),
    "where shares have a least": attention(low(BEFORE), softmax=f"{SHARES} shares = Max(p, few)"),
    "where something stands for shares": attention(
        BEFORE, "masked = Where(mask, scores, low)", softmax=f"{SHARES} shares = Where(mask, p, few)"
    ),
    "where what is hidden is raised": attention(low(BEFORE, -1e9), RAISED),
    "where a query of one head sees nothing": attention(low(ONE_ROW, -1e9)),
    "where a slice has attributes": attention(low(BEFORE), softmax="shares = Softmax<axis = 3>(masked)", opset=9),
}


@pytest.mark.parametrize("given", STAYS.values(), ids=STAYS)
def test_attention_stays(given: onnx.ModelProto) -> None:
    assert not understand(load(given)).otherwise


def test_masks_of_16_bits_are_compared_without_a_warning() -> None:
    given = attention(low(BEFORE))
    for value in (*given.graph.input, *given.graph.output):
        value.type.tensor_type.elem_type = onnx.TensorProto.FLOAT16
    weights = [
        numpy_helper.from_array(numpy_helper.to_array(w).clip(-6e4).astype(np.float16), w.name)
        for w in given.graph.initializer
        if w.name != "mask"
    ]
    weights.append(numpy_helper.from_array(low(BEFORE).astype(np.float16), "mask"))
    del given.graph.initializer[:]
    given.graph.initializer.extend(weights)
    assert understand(load(given)).otherwise


NODES = {
    "of rows": ("is_causal = 1, q_num_heads = 4, kv_num_heads = 4", "2, 256, 64", None),
    "of heads": ("is_causal = 1", "2, 4, 256, 16", None),
    "with fewer heads of keys": ("is_causal = 1, q_num_heads = 4, kv_num_heads = 2", "2, 256, 64", None),
    "with a mask of numbers": ("scale = 0.5", "2, 4, 256, 16", low(NEAR)),
    "with a mask of truth values": ("softcap = 2.0", "2, 4, 256, 16", CHUNK[None, None]),
    "of what came before, and near": ("is_causal = 1", "2, 4, 256, 16", low(NEAR | ~BEFORE)),
    "of what came before, in chunks": ("is_causal = 1", "2, 4, 256, 16", CHUNK),
}


@pytest.mark.parametrize(("attributes", "sizes", "mask"), NODES.values(), ids=NODES)
def test_attention_nodes_are_computed_of_the_keys_that_are_not_hidden(
    attributes: str, sizes: str, mask: np.ndarray | None
) -> None:
    of_keys = sizes.replace("64", "32") if "kv_num_heads = 2" in attributes else sizes
    given = model(
        f"""g (float[{sizes}] q, float[{of_keys}] k, float[{of_keys}] v) => (float[{sizes}] y) {{
        y = Attention<{attributes}>(q, k, v{"" if mask is None else ", mask"}) }}""",
        23,
        ir=11,
    )
    if mask is not None:
        given.graph.initializer.append(numpy_helper.from_array(mask, "mask"))
    written = ir.to_proto(understand(load(given)).model)
    assert sum(node.op_type == "Attention" for node in written.graph.node) > 1
    for ours, theirs in zip(run(written), run(given), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_attention_of_a_batch_less_one_is_computed_so_too() -> None:
    text = f"""g (float[n, 4, {COUNT}, {WIDTH}] x, float[4, {WIDTH}, {COUNT}] k, float[4, {COUNT}, {WIDTH}] v)
        => (float[m, 4, {COUNT}, {WIDTH}] y) <int64[1] none = {{0}}, int64[1] last = {{-1}}> {{
        q = Slice(x, none, last, none) scores = MatMul(q, k) {ADDED} {PLAIN} y = MatMul(shares, v) }}"""
    given = model(text)
    given.graph.initializer.append(numpy_helper.from_array(low(CHUNK), "mask"))
    assert understand(load(given)).otherwise


def test_outputs_of_attention_that_nothing_reads_are_left_out() -> None:
    given = model(
        """g (float[2, 4, 256, 16] q, float[2, 4, 256, 16] k) => (float[2, 4, 256, 16] y) {
        y, keys, values = Attention<is_causal = 1>(q, k, k) }""",
        23,
        ir=11,
    )
    written = ir.to_proto(understand(load(given)).model)
    assert {len(node.output) for node in written.graph.node if node.op_type == "Attention"} == {1}


def test_attention_stays_whose_window_slides() -> None:
    given = model(
        """g (float[2, 4, 256, 16] q, float[2, 4, 256, 16] k) => (float[2, 4, 256, 16] y) {
        y = Attention<is_causal = 1, left_window_size = 8>(q, k, k) }""",
        25,
        ir=11,
    )
    assert not understand(load(given)).otherwise


@pytest.mark.parametrize("is_float", [False, True])
def test_attention_nodes_stay_where_a_query_of_one_head_sees_nothing(is_float: bool) -> None:
    given = model(
        """g (float[2, 4, 256, 16] q, float[2, 4, 256, 16] k) => (float[2, 4, 256, 16] y) {
        y = Attention(q, k, k, mask) }""",
        23,
        ir=11,
    )
    mask = low(ONE_ROW, -1e9) if is_float else ONE_ROW
    given.graph.initializer.append(numpy_helper.from_array(mask[None], "mask"))
    assert not understand(load(given)).otherwise


NODES_THAT_STAY = {
    "that hide nothing": ("q_num_heads = 4, kv_num_heads = 4", "q, k, v"),
    "with a mask that is given": ("q_num_heads = 4, kv_num_heads = 4, is_causal = 1", "q, k, v, mask"),
    "with what was computed before": ("q_num_heads = 4, kv_num_heads = 4, is_causal = 1", "q, k, v, , past, past"),
}


@pytest.mark.parametrize(("attributes", "inputs"), NODES_THAT_STAY.values(), ids=NODES_THAT_STAY)
def test_attention_nodes_stay(attributes: str, inputs: str) -> None:
    more = ", float[2, 4, 3, 16] past" if "past" in inputs else ", float[256, 256] mask" if "mask" in inputs else ""
    outputs = "y, ks, vs" if "past" in inputs else "y"
    given = model(
        f"""g (float[2, 256, 64] q, float[2, 256, 64] k, float[2, 256, 64] v{more}) => (float[2, 256, 64] y) {{
        {outputs} = Attention<{attributes}>({inputs}) }}""",
        23,
        ir=11,
    )
    assert not understand(load(given)).otherwise


@settings(max_examples=50, deadline=None)
@given(seen=arrays(bool, (24, 16)), start=st.floats(0.0, 100.0), key=st.floats(0.0, 20.0))
def test_blocks_hold_each_query_once_and_all_keys_that_it_sees(seen: np.ndarray, start: float, key: float) -> None:
    seen = seen | np.eye(24, 16, dtype=bool) | (np.arange(24) >= 16)[:, None]
    costs = Costs(start, key)
    blocks = blocks_of(Seen.of(seen), costs)
    left = seen.copy()
    for block in blocks:
        left[block] = False
    assert not left.any()
    ends = [(block.queries.start, block.queries.stop) for block in blocks]
    assert [e for end in ends for e in end][1:-1] == [e for e in [n for _, n in ends[:-1]] for _ in range(2)]
    assert (ends[0][0], ends[-1][1]) == (0, 24)
    assert sum(costs.of(block, 16) for block in blocks) <= 24 * 16 + start + 1e-6
