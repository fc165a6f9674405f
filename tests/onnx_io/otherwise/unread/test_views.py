"""Of views those places are read whose elements are read of them, and rows that nobody reads are not computed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from superopt.onnx_io import load, understand
from superopt.onnx_io.otherwise.unread.cuts import Need
from superopt.onnx_io.otherwise.unread.evenly import Places
from superopt.onnx_io.otherwise.unread.views import places_alike
from tests.onnx_io.models import model
from tests.onnx_io.networks import Array
from tests.onnx_io.otherwise.reading import gain, operators_of

SHAPES = [(12,), (1, 12), (2, 6), (6, 2), (3, 4), (12, 1), (2, 3, 2), (3, 2, 2), (2, 2, 3), (2, 1, 6)]
BATCH, TOKENS, WIDTH = 2, 64, 96


def elements(shape: Sequence[int], need: Need) -> list[int]:
    """The places in memory of what is at some places along an axis, in the order in which they are there."""
    x = np.arange(prod(shape)).reshape(shape)
    return x.take(range(need.places.first, need.places.last + 1, need.places.step), need.axis).reshape(-1).tolist()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_what_is_read_of_a_view_are_the_elements_that_are_read_of_it(shape: tuple[int, ...]) -> None:
    seen = 0
    for other, axis in product(SHAPES, range(len(shape))):
        for first, step, many in product(range(shape[axis]), (1, 2, 3), range(1, shape[axis])):
            of = Need(axis, Places(first, step if many > 1 else 1, many))
            if of.places.last < shape[axis]:
                for need in places_alike(other, shape, of):
                    assert elements(other, need) == elements(shape, of), (other, of, need)
                    seen += 1
    assert seen > 20


def transformer(
    read: str, batch: str = str(BATCH), merged: bool = True, first: bool = False, tokens: str = str(TOKENS)
) -> onnx.ModelProto:
    """A layer of one head of attention and one more, over rows of a matrix or over sequences, of which some is read."""
    sizes = f"{tokens}, {batch}" if first else f"{batch}, {tokens}"
    order, turned = ("1, 0, 2", "1, 2, 0") if first else ("0, 1, 2", "0, 2, 1")
    flat = "Reshape({}, rows)" if merged else "Identity({})"
    last = "Gemm(g, w, b)" if merged else "MatMul(g, w)"
    apart = f"Constant<value_ints = [{sizes}, {WIDTH}]>()" if merged else "Shape(x)"
    return model(f"""g (float[{sizes}, {WIDTH}] x, float[{WIDTH}, {WIDTH}] w, float[{WIDTH}] b) => (float[k, l] y)
        <int64 one = {{0}}, int64 last = {{-1}}, int64[2] rows = {{-1, {WIDTH}}}> {{
        f = {flat.format("x")} q0 = MatMul(f, w) k0 = MatMul(f, w) v0 = MatMul(f, w) sizes = {apart}
        q1 = Reshape(q0, sizes) k1 = Reshape(k0, sizes) v1 = Reshape(v0, sizes)
        q = Transpose<perm = [{order}]>(q1) v = Transpose<perm = [{order}]>(v1) k = Transpose<perm = [{turned}]>(k1)
        s = MatMul(q, k) p = Softmax<axis = -1>(s) a = MatMul(p, v) t = Transpose<perm = [{order}]>(a)
        g = {flat.format("t")} o = {last} o1 = Reshape(o, sizes) z = Add(x, o1) m = MatMul(z, w) r = Relu(m)
        y = {read} }}""")


CASES = {
    "rows of a matrix": transformer("Gather<axis = 1>(r, one)"),
    "the last ones": transformer("Gather<axis = 1>(r, last)"),
    "of a single sequence": transformer("Gather<axis = 1>(r, one)", "1"),
    "of sequences": transformer("Gather<axis = 1>(r, one)", merged=False),
    "of as many sequences as a symbol stands for": transformer("Gather<axis = 1>(r, one)", "N", merged=False),
    "of as many tokens as a symbol stands for": transformer("Gather<axis = 1>(r, one)", "1", merged=False, tokens="N"),
    "of any number of sequences and tokens": transformer("Gather<axis = 1>(r, one)", "M", merged=False, tokens="N"),
    "with steps first": transformer("Gather<axis = 0>(r, one)", first=True),
}


def given(source: onnx.ModelProto) -> dict[str, Array]:
    rng = np.random.default_rng(0)
    shapes = {v.name: [d.dim_value or 8 for d in v.type.tensor_type.shape.dim] for v in source.graph.input}
    return {name: (rng.standard_normal(shape) / 4).astype(np.float32) for name, shape in shapes.items()}


def products(source: onnx.ModelProto) -> int:
    """How often layers multiply, where a symbol stands for eight."""
    known = onnx.ModelProto()
    known.CopyFrom(source)
    for dim in (d for v in known.graph.input for d in v.type.tensor_type.shape.dim):
        dim.dim_value = dim.dim_value or 8
    del known.graph.value_info[:]
    inferred = onnx.shape_inference.infer_shapes(known, data_prop=True).graph
    values = (*inferred.value_info, *inferred.output, *inferred.input)
    shapes = {v.name: [d.dim_value or 8 for d in v.type.tensor_type.shape.dim] for v in values}
    of = [node for node in source.graph.node if node.op_type in ("Gemm", "MatMul")]
    return sum(prod(shapes[node.output[0]]) * shapes[node.input[0]][-1] for node in of)


@pytest.mark.parametrize("source", CASES.values(), ids=CASES)
def test_of_a_transformer_rows_are_computed_that_are_read(source: onnx.ModelProto) -> None:
    operators_of(source, given(source))
    made = ir.to_proto(understand(load(source)).model)
    assert products(made) < 0.6 * products(source)


@pytest.mark.parametrize("bias", ["96", "1", "64, 1", "64, 96", "1, 96"])
@pytest.mark.parametrize("turned", [0, 1])
def test_rows_of_a_layer_have_their_biases(turned: int, bias: str) -> None:
    sizes = "96, 64" if turned else "64, 96"
    source = model(f"""g (float[{sizes}] x, float[96, 96] w, float[{bias}] b) => (float[k, l] y)
        <int64[2] at = {{3, 9}}> {{
        z = Gemm<transA = {turned}, alpha = 0.5, beta = 2.0>(x, w, b) r = Relu(z) y = Gather(r, at) }}""")
    operators_of(source, given(source))
    assert products(ir.to_proto(understand(load(source)).model)) < 0.2 * products(source)


def test_the_last_of_as_many_tokens_as_a_symbol_stands_for_is_left() -> None:
    source = transformer("Gather<axis = 1>(r, last)", "1", merged=False, tokens="N")
    assert not understand(load(source), only={"unread"}).otherwise


def test_sizes_of_as_many_tokens_as_a_symbol_stands_for_are_as_they_were() -> None:
    source = transformer("Gather<axis = 1>(u, one)", "1", merged=False, tokens="N")
    body = "h0 = Shape(r) h1 = Cast<to = 1>(h0) h2 = ReduceSum(h1) u = Mul(r, h2)"
    nodes = [*source.graph.node, *model(f"g (float[1, N, 96] r) => (float[k, l, m] u) {{ {body} }}").graph.node]
    nodes.append(nodes.pop(-5))
    del source.graph.node[:]
    source.graph.node.extend(nodes)
    operators_of(source, given(source))


def test_rows_of_which_an_output_gives_all_are_computed() -> None:
    source = CASES["rows of a matrix"]
    more = onnx.ModelProto()
    more.CopyFrom(source)
    more.graph.output.append(onnx.helper.make_tensor_value_info("r", onnx.TensorProto.FLOAT, [BATCH, TOKENS, WIDTH]))
    operators_of(more, given(more))
    assert products(ir.to_proto(understand(load(more)).model)) == products(source)


def test_a_transformer_is_faster_for_its_first_token() -> None:
    source = CASES["rows of a matrix"]
    assert gain(source, given(source)) > 1.2


def test_what_drops_nothing_any_more_is_read_alone_as_well() -> None:
    source = model(f"""g (float[1, {TOKENS}, {WIDTH}] x, float[{WIDTH}, {WIDTH}] w) => (float[1, {WIDTH}] y)
        <float share = {{0.5}}, bool trains = {{0}}, int64 one = {{1}}> {{
        a = MatMul(x, w) b = Dropout(a, share, trains) c = MatMul(b, w) d = Relu(c) y = Gather<axis = 1>(d, one) }}""")
    operators_of(source, given(source))
    made = ir.to_proto(understand(load(source)).model)
    assert products(made) < products(source) / 8
