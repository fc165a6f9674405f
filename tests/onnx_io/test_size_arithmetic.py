"""Shape arithmetic in graphs, as exporters write it: resolved where it is decided, symbolic where it is not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx.helper
import onnx_ir as ir
import pytest

from superopt.onnx_io import Program, check, load, rewritten, understand
from superopt.operators.pointwise import Relu
from superopt.search.accepting.reference import reference_of
from superopt.search.cutting.pieces import cut_into_pieces
from tests.onnx_io.models import model, terms
from tests.onnx_io.networks import run

HEADS = """g (float[B, S, 12] x) => (float[B, H, T, 3] y)
  <int64 i0 = {0}, int64 i1 = {1}, int64[1] at = {0}, int64[1] heads = {4}, int64[1] rest = {-1}>
  { r = Relu(x) s0 = Shape(r) b = Gather(s0, i0) s1 = Shape(r) t = Gather(s1, i1)
    bu = Unsqueeze(b, at) tu = Unsqueeze(t, at) to = Concat<axis = 0>(bu, tu, heads, rest)
    v = Reshape(r, to) y = Transpose<perm = [0, 2, 1, 3]>(v) }"""
"""`x.view(x.size(0), x.size(1), 4, -1).transpose(1, 2)` as torch exports it."""

BROADCAST = """g (float[B, 1, 3] x, float[B, S, 3] z) => (float[P, Q, R] y)
  <int64 i0 = {0}, int64 i1 = {1}, int64[1] at = {0}, int64[1] keep = {-1}, int64 minus = {-1}>
  { sz = Shape(z) b = Gather(sz, i0) t = Gather(sz, i1) bu = Unsqueeze(b, at) tu = Unsqueeze(t, at)
    to = Concat<axis = 0>(bu, tu, keep) length = Shape(to) ones = ConstantOfShape<value = int64[1] {1}>(length)
    marks = Mul(ones, minus) unset = Equal(to, marks) wide = Where(unset, ones, to)
    e = Expand(x, wide) y = Concat<axis = 2>(e, z) }"""
"""`torch.cat([x.expand(z.size(0), z.size(1), -1), z], 2)`."""

LAST = """g (float[B, S, 4] x) => (float[B, T, 4] y)
  <int64 i1 = {1}, int64[1] at = {0}, int64[1] one = {1}, int64[1] axis = {1}>
  { s = Shape(x) t = Gather(s, i1) tu = Unsqueeze(t, at) start = Sub(tu, one) y0 = Slice(x, start, tu, axis)
    y = Relu(y0) }"""
"""`x[:, x.size(1) - 1 :]`."""

HALVES = """g (float[B, S, 4] x) => (float[B, H, T, 4] y)
  <int64 i1 = {1}, int64[1] at = {0}, int64 two = {2}, int64[1] zero = {0}, int64[1] axis = {1}>
  { s = Shape(x) t = Gather(s, i1) f = Cast<to = 1>(t) d = Cast<to = 1>(two) q = Div(f, d) h = Floor(q)
    n = Cast<to = 7>(h) nu = Unsqueeze(n, at) y0 = Slice(x, zero, nu, axis) y = Unsqueeze(y0, axis) }"""
"""`x[:, : x.size(1) // 2].unsqueeze(1)`, as old exporters divide."""

FLAT = """g (float[B, S, 4] x) => (float[P, Q] y)
  { s = Shape<end = 2>(x) n = ReduceProd<keepdims = 1>(s) r = Constant<value_ints = [4]>()
    to = Concat<axis = 0>(n, r) y0 = Reshape(x, to) y = Relu(y0) }"""
"""`x.reshape(B * S, 4)`."""

SWAPPED = """g (float[B, S, 4] x) => (float[S, B, 4] y)
  <int64[3] order = {1, 0, 2}> { s = Shape(x) to = Gather(s, order) y0 = Reshape(x, to) y = Relu(y0) }"""
"""Two sizes are computed, so that neither can be said as -1 and the other too."""

CUT = """g (float[B, S, 4] x) => (float[B, S, 4] y) <int64[1] one = {1}>
  { s = Shape<start = 1, end = 2>(x) most = Sub(s, one) sizes = Concat<axis = 0>(most, one)
    a, b = Split<axis = 1>(x, sizes) y = Concat<axis = 1>(b, a) }"""
"""`torch.roll(x, 1, 1)`, by `x.split([x.size(1) - 1, 1], 1)`."""

QUARTERS = """g (float[B, S, 4] x) => (float[B, 8, H] y)
  <int64[1] three = {3}, int64[1] four = {4}, int64[1] zero = {0}, int64[1] axis = {2}>
  { r = Relu(x) c = Transpose<perm = [0, 2, 1]>(r) p = MaxPool<kernel_shape = [1], strides = [2]>(c)
    q = MaxPool<kernel_shape = [1], strides = [2]>(p) s = Shape<start = 1, end = 2>(x) w = Add(s, three)
    n = Div(w, four) a = Slice(c, zero, n, axis) y = Concat<axis = 1>(q, a) }"""
"""What went twice in steps of two, beside as much as a quarter of it, rounded up by one division."""

EXPORTED = {
    "cut": CUT,
    "heads": HEADS,
    "broadcast": BROADCAST,
    "last": LAST,
    "halves": HALVES,
    "flat": FLAT,
    "swapped": SWAPPED,
    "quarters": QUARTERS,
}


def read(text: str, opset: int = 17) -> Program:
    return understand(load(model(text, opset)))


def feed(program: Program, values: dict[str, int]) -> dict[str, np.ndarray]:
    """Inputs of the shapes that symbols of these values give."""
    rng = np.random.default_rng(0)
    shapes = {n: [d if isinstance(d, int) else values[str(d)] for d in program.values[n].shape] for n in program.inputs}
    return {n: rng.standard_normal(shape).astype(np.float32) for n, shape in shapes.items()}


def op_types(made: ir.Model) -> list[str]:
    return [node.op_type for node in made.graph]


@pytest.mark.parametrize("text", EXPORTED.values(), ids=EXPORTED)
def test_a_model_whose_shapes_are_computed_is_understood_and_written_anew(text: str) -> None:
    program = read(text)
    assert program.summary.opaque == {}
    assert program.summary.understood == program.summary.nodes > len(program.steps)
    made = rewritten(program, terms(program), {})
    check(made)
    for values in ({"B": 2, "S": 6}, {"B": 1, "S": 2}, {"B": 3, "S": 7}):
        given = feed(program, values)
        np.testing.assert_array_equal(run(ir.to_proto(made), given)[0], run(model(text), given)[0])


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        (HEADS, "(B, 4, S, 3)"),
        (BROADCAST, "(B, S, 6)"),
        (LAST, "(B, 1, 4)"),
        (HALVES, "(B, 1, (div S 2), 4)"),
        (FLAT, "((* B S), 4)"),
    ],
)
def test_shapes_that_are_computed_are_sizes_over_those_of_the_inputs(text: str, shape: str) -> None:
    assert f"({', '.join(map(str, read(text).values['y'].shape))})" == shape


def test_what_only_computed_sizes_is_buried_with_what_read_it() -> None:
    program = read(HEADS)
    assert op_types(rewritten(program, terms(program), {})) == ["Relu", "Reshape", "Transpose"]


def test_what_computes_sizes_stays_as_it_was_while_something_reads_it() -> None:
    program = read(HEADS)
    made = rewritten(program, {"r": Relu()(Relu()(program.values["x"]))}, {})
    assert sorted(op_types(made)) == sorted([*(n.op_type for n in program.model.graph), "Relu"])
    given = feed(program, {"B": 2, "S": 5})
    np.testing.assert_array_equal(run(ir.to_proto(made), given)[0], run(model(HEADS), given)[0])


def test_a_size_that_is_an_output_stays() -> None:
    program = read("g (float[B, 4] x) => (int64[2] s, float[B, 4] y) { r = Relu(x) s = Shape(r) y = Reshape(r, s) }")
    made = rewritten(program, terms(program), {})
    assert "Shape" in op_types(made)
    check(made)


def test_sizes_that_are_decided_are_constants_among_those_that_are_not() -> None:
    program = read(
        """g (float[B, 8] x) => (float[B, 8] y) <int64 i1 = {1}, int64 zero = {0}, int64 one = {1}>
        { s = Shape(x) w = Gather(s, i1) r = Range(zero, w, one) f = Cast<to = 1>(r) y = Add(x, f) }"""
    )
    assert program.values["f"].constant
    assert list(program.data("f")) == list(range(8))
    assert [n.op_type for n in program.sizes.nodes] == ["Shape"]
    assert program.summary.opaque == {}


@pytest.mark.parametrize(
    "computed",
    [
        "to = Identity(given)",
        "to = Constant<value = int64[2] {-1, 4}>()",
        "to = Constant<value_ints = [-1, 4]>()",
        "one = Constant<value_int = 1>() to = Mul(given, one)",
        "a, b = Split<axis = 0, num_outputs = 2>(given) to = Concat<axis = 0>(a, b)",
        "f = Cast<to = 1>(given) to = Cast<to = 7>(f)",
    ],
)
def test_a_constant_is_one_however_it_is_written(computed: str) -> None:
    text = "g (float[B, 2, 2] x) => (float[B, 4] y) <int64[2] given = {-1, 4}>"
    program = read(f"{text} {{ {computed} y = Reshape(x, to) }}", 18)
    assert [s.node.op_type for s in program.steps] == ["Reshape"]
    assert program.summary.opaque == {}


def test_a_scale_computed_from_a_size_is_read_as_a_number_of_the_model() -> None:
    program = read(
        """g (float[B, S] x) => (float[B, S] y) <int64 i1 = {1}>
        { s = Shape(x) t = Gather(s, i1) f = Cast<to = 1>(t) y = Div(x, f) }"""
    )
    assert program.summary.opaque == {}
    reference = reference_of(program)
    assert reference is not None
    (y,) = reference({"x": np.ones((2, 4), np.float32)})
    assert y is not None
    assert (y == 0.25).all()


def test_sizes_that_an_opaque_node_gives_are_read_from_it() -> None:
    text = """g (float[N] x) => (float[P, Q] y) <int64[1] two = {2}, int64[1] one = {1}>
      { u = Unique<sorted = 1>(x) e = Concat<axis = 0>(u, u) s = Shape(u) to = Concat<axis = 0>(two, s, one)
        y0 = Reshape(e, to) z = Transpose<perm = [1, 0, 2]>(y0) t = Concat<axis = 0>(s, two) y = Reshape(z, t) }"""
    program = read(text)
    assert set(program.summary.opaque) == {"Unique"}
    made = rewritten(program, terms(program), {})
    given = {"x": np.array([1, 2, 1, 3, 2], np.float32)}
    np.testing.assert_array_equal(run(ir.to_proto(made), given)[0], run(model(text), given)[0])


REFUSED = {
    "a bound that may be past the end": (
        """g (float[S, 4] x, float[8, 4] z) => (float[T, 4] y) <int64 i0 = {0}, int64[1] at = {0}>
        { s = Shape<end = 1>(x) y = Slice(z, at, s, at) }""",
        17,
        "not decided",
    ),
    "a shape that a value decides": (
        """g (float[S, 4] x, int64[1] n) => (float[P, Q] y)
        { s = Shape<end = 1>(x) m = Mul(s, n) to = Concat<axis = 0>(m, n) y = Reshape(x, to) }""",
        17,
        "model runs",
    ),
    "an opset in which sizes cannot be written": (
        "g (float[S, 4] x) => (float[S, 4] y) { s = Shape(x) y = Reshape(x, s) }",
        9,
        "model runs",
    ),
    "a division whose sign is open": (
        """g (float[S, 4] x) => (float[P, 4] y) <int64[1] five = {5}, int64[1] two = {2}>
        { s = Shape<end = 1>(x) d = Sub(s, five) h = Div(d, two) y = Slice(x, h, s) }""",
        17,
        "model runs",
    ),
}


@pytest.mark.parametrize("asked", ["Equal(p, zero)", "Greater(p, zero)", "Less(zero, p)"])
def test_a_size_that_may_be_zero_decides_nothing(asked: str) -> None:
    text = f"""g (float[N, P] past, float[N, 4] x) => (float[N] y)
      <int64[1] one = {{1}}, int64[1] zero = {{0}}, int64[1] two = {{2}}>
      {{ s = Shape(past) p = Gather(s, one) m = {asked} w = Where(m, two, zero) g = Gather<axis = 1>(x, w)
        y = Squeeze(g, one) }}"""
    program = read(text)
    made = ir.to_proto(rewritten(program, terms(program), {}))
    for size in (0, 1, 3):
        given = {"past": np.ones((2, size), np.float32), "x": np.arange(8, dtype=np.float32).reshape(2, 4)}
        np.testing.assert_array_equal(run(made, given)[0], run(model(text), given)[0])


def test_a_size_that_is_named_later_makes_no_cycle() -> None:
    text = """g (float[M, 4] x) => (float[K, 4] y) <int64[1] zero = {0}, int64[1] two = {2}, int64 axis = {0}>
      { s = Shape<end = 1>(x) h = Div(s, two) q = Slice(x, zero, h, zero) w = CumSum(q, axis) y = Relu(w) }"""
    source = model(text)
    source.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "2*n"
    source.graph.value_info.append(onnx.helper.make_tensor_value_info("w", 1, ["n", 4]))
    source.graph.output[0].type.tensor_type.shape.dim[0].dim_param = "n"
    program = understand(load(source))
    made = ir.to_proto(rewritten(program, terms(program), {}))
    given = {"x": np.arange(24, dtype=np.float32).reshape(6, 4)}
    np.testing.assert_array_equal(run(made, given)[0], run(source, given)[0])


def pooled(kernel: int, pad: int = 0) -> str:
    """An image as large as what a pool gives of it."""
    return f"""g (float[1, 4, H, 8] x) => (float[1, 4, P, Q] y)
      <int64[1] zero = {{0}}, int64[1] two = {{2}}, int64[1] four = {{4}}>
      {{ p = MaxPool<kernel_shape = [{kernel}, 2], strides = [2, 2], pads = [{pad}, 0, {pad}, 0]>(x) s = Shape(p)
        n = Slice(s, two, four) f = Slice(s, zero, two) to = Concat<axis = 0>(f, n)
        r = Relu(x) y = Resize<mode = "linear">(r, , , to) }}"""


@pytest.mark.parametrize(("kernel", "heights"), [(2, (1, 2, 9)), (3, (2, 3, 9))])
def test_how_often_a_window_fits_is_read_from_what_it_gives(kernel: int, heights: Sequence[int]) -> None:
    """Of one place for two, and of two for three, onnxruntime's pools give one result and not none."""
    source, program = model(pooled(kernel)), read(pooled(kernel))
    assert program.summary.opaque == {}
    made = ir.to_proto(rewritten(program, terms(program), {}))
    for height in heights:
        given = {"x": np.random.default_rng(0).standard_normal((1, 4, height, 8)).astype(np.float32)}
        np.testing.assert_allclose(run(made, given)[0], run(source, given)[0], rtol=1e-6)


@pytest.mark.parametrize("pad", [0, 1])
def test_where_a_window_fits_once_at_least_that_is_computed_and_the_pool_is_needed_no_more(pad: int) -> None:
    program = read(pooled(3, pad))
    assert ("MaxPool" in op_types(rewritten(program, terms(program), {}))) is (pad == 0)


@pytest.mark.parametrize(("text", "opset", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_sizes_leave_open_stays_as_it_was(text: str, opset: int, reason: str) -> None:
    program = read(text, opset)
    assert reason in next(s.reason for s in program.steps if "y" in s.outputs)
    assert op_types(rewritten(program, terms(program), {})) == [n.op_type for n in program.model.graph]


def test_a_value_whose_shape_is_read_in_another_piece_is_an_output_of_its_own() -> None:
    program = read(
        """g (float[B, 4] x) => (float[B, 4] y)
        { a = Relu(x) b = Sqrt(a) u = custom.F(b) s = Shape(a) y0 = Reshape(u, s) y = Relu(y0) }"""
    )
    assert cut_into_pieces(program)[0].names == ("a", "b")
