"""A recurrence whose steps are linear in a series is a product with a matrix; any other stays as it is."""

from __future__ import annotations

import numpy as np
import pytest

from superopt.onnx_io import load, understand
from tests.onnx_io.models import model
from tests.onnx_io.otherwise.reading import operators_of

STEPS = 12
DRAWN = np.random.default_rng(0)
PLACES = ", ".join(f"int64 i{t} = {{{t if t % 2 else t - STEPS}}}" for t in range(STEPS))
HELD = f"""<{PLACES}, float p = {{0.75}}, float q = {{0.25}}, float r = {{0.01}}, float[2] w = {{1, 2}},
  float[1] s = {{3}}, float o = {{12582912}}, float v = {{1e-30}}, int64[1] a = {{1}}, int64[1] f = {{0}}>"""
SMOOTH = "l{t} = Mul({h}, p) n{t} = Mul({x}, q) h{t} = Add(l{t}, n{t})"


def series(step: str = SMOOTH, x: str = f"2, {STEPS}", axis: int = 1, at: str = "a", y: str = f"2, {STEPS}") -> str:
    """A recurrence over the steps of a series along an axis, whose states are joined along it."""
    lines = f"e0 = Gather<axis = {axis}>(x, i0) h0 = Neg(e0) u0 = Unsqueeze(h0, {at})"
    for t in range(1, STEPS):
        lines += f" e{t} = Gather<axis = {axis}>(x, i{t}) {step.format(t=t, x=f'e{t}', h=f'h{t - 1}')}"
        lines += f" u{t} = Unsqueeze(h{t}, {at})"
    joined = ", ".join(f"u{t}" for t in range(STEPS))
    return f"g (float[{x}] x) => (float[{y}] y) {HELD} {{ {lines} y = Concat<axis = {axis}>({joined}) }}"


def read(text: str) -> list[str]:
    """The operators of a model as it is read."""
    source = model(text)
    shape = [d.dim_value or 3 for d in source.graph.input[0].type.tensor_type.shape.dim]
    return operators_of(source, {"x": DRAWN.standard_normal(shape).astype(np.float32)})


LINEAR = {
    "exponential smoothing": (series(), ["MatMul"]),
    "of an open batch": (series(x=f"B, {STEPS}", y=f"B, {STEPS}"), ["MatMul"]),
    "steps along the first axis": (series(x=f"{STEPS}, 2", axis=0, at="f", y=f"{STEPS}, 2"), ["MatMul"]),
    "of several features": (series(x=f"2, {STEPS}, 3", y=f"2, {STEPS}, 3"), ["MatMul"]),
    "with a drift": (series("l{t} = Add({h}, p) h{t} = Sub(l{t}, {x})"), ["MatMul", "Add"]),
    "with a drift along the first axis": (
        series("l{t} = Sub(p, {h}) h{t} = Add(l{t}, {x})", f"{STEPS}, 2", 0, "f", f"{STEPS}, 2"), ["MatMul", "Add"]),
    "divided by a number": (series("l{t} = Div({h}, s) n{t} = Neg({x}) h{t} = Sub(l{t}, n{t})"), ["MatMul"]),
}  # fmt: skip


@pytest.mark.parametrize(("text", "operators"), LINEAR.values(), ids=LINEAR)
def test_it_is_one_product(text: str, operators: list[str]) -> None:
    assert read(text) == operators


STAYING = {
    "a product of two steps": series("l{t} = Mul({h}, {x}) h{t} = Add(l{t}, {x})"),
    "a number by a step": series("l{t} = Div(p, {h}) h{t} = Add(l{t}, {x})"),
    "no sum": series("l{t} = Tanh({h}) h{t} = Add(l{t}, {x})"),
    "numbers that round": series("l{t} = Add({x}, o) n{t} = Sub(l{t}, o) h{t} = Add(n{t}, {h})"),
    "numbers that vanish": series("l{t} = Mul({x}, v) k{t} = Mul(l{t}, v) n{t} = Div(k{t}, v) h{t} = Add(n{t}, {h})"),
    "numbers that grow": series("l{t} = Div({h}, r) h{t} = Add(l{t}, {x})"),
    "joined along another axis": series(y=f"{2 * STEPS}, 1").replace("Concat<axis = 1>", "Concat<axis = 0>"),
    "spread along another axis": series(at="f", y=f"1, {2 * STEPS}"),
    "a number for each of the batch": series("l{t} = Add({h}, w) h{t} = Add(l{t}, {x})"),
    "of few nodes": "g (float[2, 12] x) => (float[2, 2] y) " + HELD + """ { b = Gather<axis = 1>(x, i1) d = Mul(b, p)
      k = Unsqueeze(d, a) e = Gather<axis = 1>(x, i2) u = Unsqueeze(e, a) y = Concat<axis = 1>(k, u) }""",
}  # fmt: skip


@pytest.mark.parametrize("text", STAYING.values(), ids=STAYING)
def test_it_stays(text: str) -> None:
    assert "Concat" in read(text)


def test_operators_of_another_domain_are_none_of_these() -> None:
    text = series("l{t} = Mul({h}, p) h{t} = Add(l{t}, {x})").replace("l1 = Mul(", "l1 = custom.Mul(")
    operators = {(n.domain, n.op_type) for n in understand(load(model(text))).model.graph}
    assert ("custom", "Mul") in operators
