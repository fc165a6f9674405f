"""What convolutions compute at places that nobody reads is not computed, and all that is read is the same."""

from __future__ import annotations

from math import prod

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from superopt.onnx_io import load, understand
from tests.onnx_io.models import model
from tests.onnx_io.networks import Array
from tests.onnx_io.otherwise.reading import gain, operators_of

CHANNELS, LENGTH = 24, 96
HELD = ", ".join(
    [
        "int64 last = {-1}, int64[3] places = {15, 47, 79}, int64[1] first = {0}, int64[1] time = {2}",
        "int64[1] half = {48}, int64[1] many = {9223372036854775807}, int64[1] one = {1}, int64[1] two = {2}",
        "int64[6] around = {0, 0, 16, 0, 0, 0}, float bound = {2.0}, float scale = {0.1}, uint8 zero = {128}",
    ]
)


def network(body: str, sizes: str = f"1, {CHANNELS}, {LENGTH}", results: str = "k, l, m", kernel: str = "3") -> str:
    """A network of `x` with convolutions that all have the weights `w`, as many channels as before after each."""
    weights = f"{CHANNELS}, {CHANNELS}, {kernel}"
    return f"g (float[{sizes}] x, float[{weights}] w) => (float[{results}] y) <{HELD}> {{ {body} }}"


def looking_back(last: str, padded: str = "before", layers: int = 4, between: str = "Relu") -> str:
    """Layers whose dilations double, padded before or apart, or on both sides and cut; `b` is what they give."""
    lines, x = [], "x"
    for i in range(layers):
        by, conv = 2**i, f"Conv<dilations = [{2**i}]"
        if padded == "before":
            lines.append(f"c{i} = {conv}, pads = [{2 * by}, 0]>({x}, w)")
        elif padded == "apart":
            lines.append(f"n{i} = Constant<value_ints = [0, 0, {2 * by}, 0, 0, 0]>() p{i} = Pad({x}, n{i})")
            lines.append(f"c{i} = {conv}>(p{i}, w)")
        else:
            lines.append(f"d{i} = {conv}, pads = [{2 * by}, {2 * by}]>({x}, w)")
            lines.append(f"n{i} = Constant<value_ints = [{-2 * by}]>() c{i} = Slice(d{i}, first, n{i}, time)")
        x, before = (f"b{i}" if i < layers - 1 else "b"), x
        lines.append(f"r{i} = {between}(c{i}) {x} = Add(r{i}, {before})")
    return " ".join([*lines, last])


LAST = "y = Gather<axis = 2>(b, last)"


def feeds(source: onnx.ModelProto) -> dict[str, Array]:
    rng, found = np.random.default_rng(0), dict[str, Array]()
    for value in source.graph.input:
        shape = [d.dim_value or 2 for d in value.type.tensor_type.shape.dim]
        found[value.name] = (rng.standard_normal(shape) / 8).astype(np.float32)
    return found


def elements(source: onnx.ModelProto) -> int:
    """How many elements convolutions give together."""
    inferred = onnx.shape_inference.infer_shapes(source, data_prop=True).graph
    values = (*inferred.value_info, *inferred.output)
    shapes = {value.name: [d.dim_value or 1 for d in value.type.tensor_type.shape.dim] for value in values}
    return sum(prod(shapes[node.output[0]]) for node in source.graph.node if node.op_type == "Conv")


def shares(text: str) -> float:
    """Which share of the elements is left of a model that computes the same."""
    source = model(text)
    operators_of(source, feeds(source))
    return elements(ir.to_proto(understand(load(source)).model)) / elements(source)


TURNED = "t = Transpose<perm = [0, 2, 1]>(b)"
PRODUCT = f"s = Slice(w, first, one, two) v = Squeeze(s, two) {TURNED} m = MatMul(t, v)"
EINSUM = 'e = Einsum<equation = "ncl,cok->nol">(b, w)'
MEANS = "e = Softmax<axis = 1>(b) m = ReduceMean<axes = [1]>(e) s = Sub(e, m)"
BYTES = "q = QuantizeLinear(b, scale, zero) s = DequantizeLinear(q, scale, zero)"
NORM = f"h = Constant<value_ints = [{CHANNELS}]>() v = ConstantOfShape(h) {TURNED} s = LayerNormalization(t, v)"
TWICE = "u = Gather<axis = 2>(b, last) s = Relu(b) v = Gather<axis = 2>(s, last) y = Add(u, v)"
LESS = {
    "the last step": (looking_back(LAST), "k, l", 0.5),
    "padded apart": (looking_back(LAST, "apart"), "k, l", 0.5),
    "padded on both sides and cut": (looking_back(LAST, "beside"), "k, l", 0.45),
    "cut alone": (looking_back("y = Relu(b)", "beside", 5), "k, l, m", 0.9),
    "some steps": (looking_back("y = Gather<axis = 2>(b, places)"), "k, l, m", 0.9),
    "each second one": (looking_back("y = Slice(b, first, many, time, two)"), "k, l, m", 0.95),
    "the first half": (looking_back("y = Slice(b, first, half, time)"), "k, l, m", 0.55),
    "time before channels": (looking_back(f"{TURNED} y = Gather<axis = 1>(t, last)"), "k, l", 0.5),
    "of a product": (looking_back(f"{PRODUCT} y = Gather<axis = 1>(m, last)"), "k, l", 0.5),
    "of an einsum": (looking_back(f"{EINSUM} y = Gather<axis = 2>(e, last)"), "k, l", 0.5),
    "of means and shares": (looking_back(f"{MEANS} y = Gather<axis = 2>(s, last)"), "k, l", 0.5),
    "of bytes": (looking_back(f"{BYTES} y = Gather<axis = 2>(s, last)"), "k, l", 0.5),
    "of norms": (looking_back(f"{NORM} y = Gather<axis = 1>(s, last)"), "k, l", 0.5),
    "by two": (looking_back(TWICE), "k, l", 0.5),
}


@pytest.mark.parametrize(("body", "results", "most"), LESS.values(), ids=LESS)
def test_what_nobody_reads_is_not_computed(body: str, results: str, most: float) -> None:
    assert shares(network(body, results=results)) < most


def test_any_number_of_rows_is_read() -> None:
    assert shares(network(looking_back(LAST), f"N, {CHANNELS}, {LENGTH}", "k, l")) < 0.5


STRIDES = """a = Conv<pads = [1, 1, 1, 1]>(x, w) r = Relu(a) s = Add(r, x)
    from = Constant<value_ints = [0, 0]>() to = Constant<value_ints = [1, 1]>() axes = Constant<value_ints = [2, 3]>()
    p = Slice(w, from, to, axes) y = Conv<strides = [2, 2]>(s, p)"""


def test_of_pictures_that_are_strided_through_a_quarter_is_computed() -> None:
    text = network(STRIDES, f"1, {CHANNELS}, 16, 16", "k, l, m, n", "3, 3")
    assert shares(text) == pytest.approx((64 + 64) / (256 + 64))
    source = model(text)
    made = understand(load(source)).model
    assert [node.op_type for node in made.graph].count("AveragePool") == 2
    assert {tuple(n.attributes["strides"].as_ints()) for n in made.graph if n.op_type == "Conv"} == {(2, 2), (1, 1)}


TRAINED = f"""h = Constant<value_ints = [{CHANNELS}]>() v = ConstantOfShape<value = float[1] {{1.0}}>(h)
    t, d, e = BatchNormalization<training_mode = 1>(b, v, v, v, v) y = Slice(t, first, half, time)"""
EACH_STEP = f"""{TURNED} h = Constant<value_ints = [{LENGTH}, {CHANNELS}]>() v = ConstantOfShape(h)
    s = LayerNormalization(t, v) y = Slice(s, first, half, one)"""
LEFT = {
    "all steps": looking_back("y = Relu(b)"),
    "what is given as well": looking_back("y = Identity(b) z = Gather<axis = 2>(b, last)"),
    "what is padded otherwise": 'p = Pad<mode = "reflect">(x, around) c = Conv(p, w) '
    'q = Pad<mode = "reflect">(c, around) y = Slice(q, first, half, time)',
    "norms of the batch": looking_back(TRAINED),
    "weights of each step": looking_back(EACH_STEP),
    "means of all": looking_back("m = ReduceMean<axes = [2]>(b) y = Add(b, m)"),
}


@pytest.mark.parametrize("body", LEFT.values(), ids=LEFT)
def test_what_is_read_is_computed(body: str) -> None:
    assert shares(network(body)) == 1


def test_what_spares_no_more_than_taking_places_out_costs_is_left() -> None:
    body = "c = Conv<pads = [1, 1]>(x, w) y = Slice(c, first, half, time)"
    assert shares(network(body, f"1, {CHANNELS}, 104")) == 1
    assert shares(network(body, f"1, {CHANNELS}, 208")) < 0.25


def test_sizes_are_those_of_all_that_was_computed() -> None:
    last = "g = Shape(b) h = Cast<to = 1>(g) z = Gather<axis = 2>(b, last) s = ReduceSum<keepdims = 0>(z) y = Mul(h, s)"
    assert shares(network(looking_back(last), f"N, {CHANNELS}, {LENGTH}", "k")) < 0.5


def test_lengths_that_are_not_known_are_left() -> None:
    assert not understand(load(model(network(looking_back(LAST), f"1, {CHANNELS}, L", "k, l")))).otherwise


def test_what_a_branch_reads_is_computed() -> None:
    branches = ", ".join(
        f"{name}_branch = {name}_graph () => (float[k, l, m] u_{name}) {{ u_{name} = {op}(b) }}"
        for name, op in (("then", "Relu"), ("else", "Neg"))
    )
    last = f"z = Gather<axis = 2>(b, last) s = ReduceMax<keepdims = 0>(z) h = Greater(s, bound) y = If<{branches}>(h)"
    assert shares(network(looking_back(last))) == 1


def test_a_network_that_looks_back_is_faster_for_its_last_step() -> None:
    source = model(network(looking_back(LAST, layers=5), f"1, {CHANNELS}, 400", "k, l"))
    assert gain(source, feeds(source)) > 1.5
