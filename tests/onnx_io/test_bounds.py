"""Slices of buffers are read where the model fails at every size that goes past their end, and nowhere else."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from onnx.helper import tensor_dtype_to_np_dtype

from superopt.onnx_io import load, rewritten, understand
from tests.onnx_io.models import model, terms
from tests.onnx_io.networks import run

BUFFER = "float[4] p = {1, 2, 3, 4}, int64[1] zero = {0}, int64[1] one = {1}"
CUT = "s = Shape<start = 1, end = 2>(x) c = Slice(p, zero, s, zero)"


def graph(inside: str, buffer: str = BUFFER, inputs: str = "float[B, S] x", cut: str = CUT) -> str:
    return f"g ({inputs}) => (float[P, Q] y) <{buffer}> {{ {cut} {inside} }}"


MET = {
    "added": graph("y = Add(x, c)"),
    "added to what something else is made of": graph("r = Relu(x) a = Add(c, r) y = Relu(a)"),
    "spread": graph("to = Shape(x) e = Expand(c, to) y = Mul(e, x)"),
    "chosen": graph("l = Less(x, x) y = Where(l, x, c)"),
    "twice": graph("d = Slice(p, zero, s, zero) a = Add(x, c) y = Sub(a, d)"),
}
OPEN = {
    "read alone": (graph("u = Unsqueeze(c, zero) y = Relu(u)"), (2, 4, 6)),
    "from another start": (graph("y = Add(x, c)", cut=CUT.replace("p, zero", "p, one")), (2,)),
    "for nothing": (graph("a = Add(x, c) u = Unsqueeze(c, zero) y = Relu(u)"), (2, 4)),
    "added to what has another size": (graph("y = Add(z, c)", inputs="float[B, S] x, float[B, T] z"), (1, 2, 4)),
    "joined": (graph("u = Unsqueeze(c, zero) y = Concat<axis = 0>(u, u)"), (2, 4, 6)),
    "declared of a size that is met elsewhere": (
        f"g (float[B, S] x, int32[C, S] z) => (int32[P, Q] y, float[S] c) <{BUFFER}> "
        f"{{ {CUT} n = Cast<to = 6>(x) y = Add(n, z) }}",
        (2, 4),
    ),
}


@pytest.mark.parametrize("text", MET.values(), ids=MET)
def test_a_slice_of_as_many_places_as_it_meets_is_read(text: str) -> None:
    assert understand(load(model(text))).summary.opaque == {}
    for size in (1, 3, 4):
        assert_the_same(text, {"x": np.arange(2 * size, dtype=np.float32).reshape(2, size)})
    with pytest.raises(Exception, match=r"broadcast|Expand"):
        run(model(text), {"x": np.zeros((2, 5), np.float32)})


def assert_the_same(text: str, given: dict[str, np.ndarray]) -> None:
    """What is written of the terms that a model was read as computes the same."""
    program = understand(load(model(text)))
    made = ir.to_proto(rewritten(program, terms(program), {}))
    for one, other in zip(run(made, given), run(model(text), given), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(("text", "sizes"), OPEN.values(), ids=OPEN)
def test_a_slice_that_may_go_past_the_end_stays_as_it_is(text: str, sizes: tuple[int, ...]) -> None:
    assert "Slice" in understand(load(model(text))).summary.opaque
    for size in sizes:
        kinds = {v.name: v.type.tensor_type.elem_type for v in model(text).graph.input}
        ones = {name: np.ones((2, size), tensor_dtype_to_np_dtype(kind)) for name, kind in kinds.items()}
        assert_the_same(text, ones)


PAST = """p = {1, 2, 3, 4}, float[1] f = {7}, int64[1] zero = {0}, int64[1] one = {1}"""
LONGER = {
    "a symbol that another reading gave to something else": (
        f"""g (float[B, S] x, bool[K] c1, bool[L] c2) => (float[P, Q] y0, float[R] y1, float[V, U] y2, float[W] e2)
          <float[4] {PAST}> {{
          s = Shape<start = 1, end = 2>(x) ax = Mod(zero, one) w = Unsqueeze(p, ax) c = Slice(w, zero, s, one)
          y0 = Add(x, c) xa = Unsqueeze(x, ax) k1 = Compress<axis = 1>(xa, c1) n1 = Shape<start = 1, end = 2>(k1)
          r1 = ReduceMax<axes = [0, 2], keepdims = 0>(k1) d1 = Slice(p, zero, n1, zero) y1 = Add(r1, d1)
          k2 = Compress<axis = 1>(xa, c2) n2 = Shape<start = 1, end = 2>(k2) d2 = Slice(p, zero, n2, zero)
          u = Unsqueeze(d2, zero) y2 = Relu(u) sc = Shape(d2) e2 = Expand(f, sc) }}""",
        {
            "x": np.ones((6, 3), np.float32),
            "c1": np.array([True, True, False, False, False, False]),
            "c2": np.ones(6, np.bool_),
        },
    ),
    "spread over a shape that nobody knows": (
        f"""g (float[B, S] x, int64[S] t) => (int64 y, float[V, U] y2, float[W] e2) <float[4] {PAST}> {{
          s = Shape<start = 1, end = 2>(x) c = Slice(p, zero, s, zero) e = Expand(c, t) y = Size(e)
          u = Unsqueeze(c, zero) y2 = Relu(u) sc = Shape(c) e2 = Expand(f, sc) }}""",
        {"x": np.ones((2, 6), np.float32), "t": np.array([1, 1, 1, 1, 1, 4])},
    ),
    "every second place, of which one is left": (
        """g (float[B, S] x) => (float[P, Q] y, float[W] e2) <float[2] p = {1, 2}, float[1] f = {7},
          int64[1] zero = {0}, int32[1] z = {0}, int32[1] two = {2}> {
          s = Shape<start = 1, end = 2>(x) i = Cast<to = 6>(s) c = Slice(p, z, i, z, two) y = Add(x, c)
          d = Slice(p, z, i, z) sc = Shape(d) e2 = Expand(f, sc) }""",
        {"x": np.ones((2, 5), np.float32)},
    ),
}


@pytest.mark.parametrize(("text", "given"), LONGER.values(), ids=LONGER)
def test_where_the_model_runs_beyond_the_end_its_slices_stay(text: str, given: dict[str, np.ndarray]) -> None:
    assert_the_same(text, given)


def test_all_but_the_last_place_of_a_size_that_is_computed_are_read() -> None:
    text = """g (float[B, 4, S] x) => (float[B, 4, T] y) <int64[1] zero = {0}, int64[1] end = {-1}, int64[1] axis = {2}>
      { m = MaxPool<kernel_shape = [3], strides = [2]>(x) y = Slice(m, zero, end, axis) }"""
    assert understand(load(model(text))).summary.opaque == {}
    for size in (5, 8):
        assert_the_same(text, {"x": np.arange(8 * size, dtype=np.float32).reshape(2, 4, size)})


def test_tokens_cut_out_of_a_buffer_leave_no_size_open() -> None:
    """As BERT's exports take positions and types of tokens: ever more of the model follows from each slice."""
    text = """g (float[B, S, 4] x, float[B, S] mask) => (float[B, S, 4] y)
      <int64[1, 4] ids = {0, 1, 2, 3}, float[4, 4] table = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
       int64[1] zero = {0}, int64[1] one = {1}, int64[1] last = {2}>
      { s = Shape<start = 1, end = 2>(x) to = Shape<end = 2>(x) cut = Slice(ids, zero, s, one) all = Expand(cut, to)
        row = Slice(table, zero, s, zero) z = Add(x, row) r = Relu(z) f = Cast<to = 1>(all) n = Add(mask, f)
        m = Unsqueeze(n, last) y = Mul(r, m) }"""
    program = understand(load(model(text)))
    assert program.summary.opaque == {}
