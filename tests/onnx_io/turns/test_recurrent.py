"""Loops that are recurrent networks are one operator for all turns; what is no such loop stays."""

from __future__ import annotations

import re

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import numpy_helper

from superopt.onnx_io import apart, load, understand
from tests.onnx_io.models import model
from tests.onnx_io.networks import run

STEPS, ROWS, READ, WIDTH = 5, 2, 3, 4
WEIGHTS = {"w": (READ, 4 * WIDTH), "r": (WIDTH, 4 * WIDTH), "r2": (WIDTH, 4 * WIDTH), "w2": (WIDTH, 4 * WIDTH)}
WEIGHTS |= {
    "b": (4 * WIDTH,),
    "j": (READ + WIDTH, WIDTH),
    "o": (WIDTH, 2),
    "k": (READ + WIDTH, 2 * WIDTH),
    "v": (WIDTH,),
    "ww": (READ, READ),
}
HELD = "<bool go = {1}, int64 n = {5}, float one = {1}>"
LSTM = """u = MatMul({x}, w{i}) p = MatMul({h}, r{i}) q = Add(u, p) s = Add(q, b)
    a, f, g, e = Split<axis = 1, num_outputs = 4>(s)
    ga = Sigmoid(a) gf = Sigmoid(f) gg = Tanh(g) ge = Sigmoid(e) m = Mul(gf, {c}) l = Mul(ga, gg) {nc} = Add(m, l)
    t = Tanh({nc}) {nh} = Mul(ge, t)"""
LONG = LSTM.format(x="x", h="h", c="c", nc="d", nh="y", i="")
GRU = """xh = Concat<axis = 1>(x, h) ks = MatMul(xh, k) ga = Sigmoid(ks) rs, us = Split<axis = 1, num_outputs = 2>(ga)
    rh = Mul(rs, h) xr = Concat<axis = 1>(x, rh) ns = Gemm(xr, j, v) nn = Tanh(ns) df = Sub(h, nn) ud = Mul(us, df)
    y = Add(nn, ud)"""
RNN = "xh = Concat<axis = 1>(x, h) s = Gemm(xh, j, v) y = Tanh(s)"


def scan(body: str, states: str = "h, c", left: str = "y, d", attributes: str = "", rows: str = "2") -> str:
    """A Scan over the steps of a series."""
    row, finals = f"float[{rows}, {WIDTH}]", ", ".join(f"e{i}" for i in range(len(left.split(", "))))
    begins = ", ".join(f"b{s}" for s in states.split(", "))
    starts, ins, outs = (", ".join(f"{row} {s}" for s in names.split(", ")) for names in (begins, states, left))
    return f"""g (float[{STEPS}, {rows}, {READ}] xs, {starts}) => ({row} e0, float[s, m, q] z) {HELD} {{
      {finals}, z = Scan<num_scan_inputs = 1{attributes}, body = p ({ins}, float[{rows}, {READ}] x)
        => ({outs}, float[m, q] yy) {{ {body} }}>({begins}, xs) }}"""


def loop(
    body: str, times: str = "n", before: str = "", take: str = "x = Gather<axis = 0>(xs, i)", size: str = "5"
) -> str:
    """A Loop with the states of an LSTM."""
    row = f"float[{ROWS}, {WIDTH}]"
    return f"""g (float[{size}, {ROWS}, {READ}] xs, {row} bh, {row} bc)
      => ({row} e0, {row} e1, float[s, m, q] z) {HELD} {{ {before}
      e0, e1, z = Loop({times}, go, bh, bc)
        <body = p (int64 i, bool w_, {row} h, {row} c) => (bool goes, {row} y, {row} d, float[m, q] yy)
          {{ goes = Identity(w_) {take} {body} yy = Identity(y) }}> }}"""


def written(text: str) -> list[str]:
    """The operators of what a model is with its turns apart, without constants, which computes the same."""
    source = model(text, 18)
    rng, used = np.random.default_rng(0), text.replace(",", " ").replace(")", " ").replace("(", " ").split()
    for name, shape in WEIGHTS.items():
        if name in used:
            source.graph.initializer.append(
                numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32), name)
            )
    onnx.checker.check_model(source, full_check=True)
    found = apart(understand(load(source)))
    made = source if found is None else ir.to_proto(found)
    onnx.checker.check_model(made, full_check=True)
    assert (made.graph.input, made.graph.output) == (source.graph.input, source.graph.output)
    sizes = {i.name: [d.dim_value or 5 for d in i.type.tensor_type.shape.dim] for i in source.graph.input}
    feeds = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in sizes.items()}
    for one, other in zip(run(made, feeds), run(source, feeds), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    return [node.op_type for node in made.graph.node if node.op_type != "Constant"]


COPY = " yy = Identity(y)"
SECOND = re.sub(
    r"\b(u|p|q|s|a|f|g|e|ga|gf|gg|ge|m|l|t)\b", r"\1_", LSTM.format(x="y", h="h2", c="c2", nc="d2", nh="y2", i="2")
)
RECURRENT = {
    "an LSTM in a Scan": (scan(LONG + COPY), "LSTM"),
    "a GRU in a Scan": (scan(GRU + COPY, "h", "y"), "GRU"),
    "one layer in a Scan": (scan(RNN + COPY, "h", "y"), "RNN"),
    "an LSTM in a Loop": (loop(LONG), "LSTM"),
    "an LSTM in a Loop over any number of steps": (
        loop(LONG, "t0", "sh = Shape(xs) zero = Constant<value_int = 0>() t0 = Gather(sh, zero)", size="T"), "LSTM"),
    "with a layer behind it": (scan(LONG + " yy = MatMul(y, o)"), "LSTM"),
    "two layers": (scan(f"{LONG} {SECOND} yy = Identity(y2)", "h, c, h2, c2", "y, d, y2, d2"), "LSTM"),
    "of rows to which a number is added": (
        loop(LONG, before="xa = MatMul(xs, ww) xp = Add(xa, one)", take="x = Gather<axis = 0>(xp, i)"), "LSTM"),
    "with any number of rows": (scan(LONG + COPY, rows="N"), "LSTM"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "op_type"), RECURRENT.values(), ids=RECURRENT)
def test_a_loop_is_one_node(text: str, op_type: str) -> None:
    operators = written(text)
    assert operators.count(op_type) == (2 if "w2" in text else 1)
    assert not {"Scan", "Loop"}.intersection(operators)


STAYING = {
    "from the last row to the first": scan(LONG + COPY, attributes=", scan_input_directions = [1]"),
    "what gives something else": scan(LONG + " yy = Add(d, y)"),
    "states that are changed": scan(LONG.replace("y = Mul", "y_ = Mul") + " y = Neg(y_)" + COPY),
    "a sum of states": scan(RNN.replace("y = Tanh", "t = Tanh") + " y = Add(t, h)" + COPY, "h", "y"),
    "the last row first": loop(
        LONG, take="k_ = Constant<value_int = 4>() i_ = Sub(k_, i) x = Gather<axis = 0>(xs, i_)"),
}  # fmt: skip


@pytest.mark.parametrize("text", STAYING.values(), ids=STAYING)
def test_others_stay(text: str) -> None:
    operators = written(text)
    assert not {"LSTM", "GRU", "RNN"}.intersection(operators)
    assert {"Scan", "Loop"}.intersection(operators)
