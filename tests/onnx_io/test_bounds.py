"""Slices of buffers are read where the model fails at every size that goes past their end, and nowhere else."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

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
    "read alone": graph("u = Unsqueeze(c, zero) y = Relu(u)"),
    "from another start": graph("y = Add(x, c)", cut=CUT.replace("p, zero", "p, one")),
    "for nothing": graph("a = Add(x, c) u = Unsqueeze(c, zero) y = Relu(u)"),
    "added to what has another size": graph("y = Add(z, c)", inputs="float[B, S] x, float[B, T] z"),
    "joined": graph("u = Unsqueeze(c, zero) y = Concat<axis = 0>(u, u)"),
}


@pytest.mark.parametrize("text", MET.values(), ids=MET)
def test_a_slice_of_as_many_places_as_it_meets_is_read(text: str) -> None:
    program = understand(load(model(text)))
    assert program.summary.opaque == {}
    made = ir.to_proto(rewritten(program, terms(program), {}))
    for size in (1, 3, 4):
        given = {"x": np.arange(2 * size, dtype=np.float32).reshape(2, size)}
        np.testing.assert_array_equal(run(made, given)[0], run(model(text), given)[0])
    with pytest.raises(Exception, match=r"broadcast|Expand"):
        run(model(text), {"x": np.zeros((2, 5), np.float32)})


@pytest.mark.parametrize("text", OPEN.values(), ids=OPEN)
def test_a_slice_that_may_go_past_the_end_stays_as_it_is(text: str) -> None:
    program = understand(load(model(text)))
    assert "Slice" in program.summary.opaque
    made = ir.to_proto(rewritten(program, terms(program), {}))
    for size in (2,) if "Add" in text else (2, 4, 6):
        given = {v.name: np.ones((2, size), np.float32) for v in made.graph.input}
        np.testing.assert_array_equal(run(made, given)[0], run(model(text), given)[0])


def test_tokens_cut_out_of_a_buffer_leave_no_size_open() -> None:
    """As BERT's exports take positions and types of tokens: ever more of the model follows from each slice."""
    text = """g (float[B, S, 4] x, float[B, S] mask) => (float[B, S, 4] y)
      <int64[1, 4] ids = {0, 1, 2, 3}, float[4, 4] table = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
       int64[1] zero = {0}, int64[1] one = {1}, int64[1] last = {2}>
      { s = Shape<start = 1, end = 2>(x) to = Shape<end = 2>(x) cut = Slice(ids, zero, s, one) all = Expand(cut, to)
        row = Slice(table, zero, s, zero) z = Add(x, row) r = Relu(z) m = Unsqueeze(mask, last) y = Mul(r, m) }"""
    program = understand(load(model(text)))
    assert program.summary.opaque == {}
