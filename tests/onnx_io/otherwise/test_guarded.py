"""A softplus that is guarded where it is as large as what it is of is that by itself."""

from __future__ import annotations

import numpy as np
import pytest

from superopt.onnx_io.otherwise.guarded import LEAST
from tests.onnx_io.models import model
from tests.onnx_io.otherwise.reading import operators_of

PLAIN = "s = Softplus(x) c = {above} y = Where(c, x, s)"
SHARP = "z = Mul({product}) p = Softplus(z) s = Div(p, two) c = Greater(z, t) y = Where(c, x, s)"
NEAR = np.array([[-100, -1, 0, 1, 16.9, 17, 17.1, 8.4, 8.6, 20, 20.1, 88, 100, 1e4, 1e30, np.inf]], np.float32)


def read(nodes: str, threshold: float = 20.0) -> list[str]:
    """The operators of a model as it is read, which computes the same, but for rounding."""
    held = f"<float t = {{{threshold}}}, float two = {{2}}, float[1] sharp = {{3}}>"
    return operators_of(model(f"g (float[N, 16] x) => (float[N, 16] y) {held} {{ {nodes} }}"), {"x": NEAR})


GUARDED = {
    "greater": PLAIN.format(above="Greater(x, t)"),
    "or equal": PLAIN.format(above="GreaterOrEqual(x, t)"),
    "less": PLAIN.format(above="Less(t, x)"),
    "less or equal": PLAIN.format(above="LessOrEqual(t, x)"),
    "a sharper one": SHARP.format(product="x, two"),
    "a number times x": SHARP.format(product="two, x"),
}


@pytest.mark.parametrize("nodes", GUARDED.values(), ids=GUARDED)
def test_nothing_is_chosen(nodes: str) -> None:
    assert not {"Where", "Greater", "Less"}.intersection(read(nodes))


LEFT = {
    "the other way round": PLAIN.format(above="Less(x, t)"),
    "of something else": "e = Neg(x) s = Softplus(e) c = Greater(x, t) y = Where(c, x, s)",
    "something else chosen": "e = Neg(x) s = Softplus(x) c = Greater(x, t) y = Where(c, e, s)",
    "the softplus above": "s = Softplus(x) c = Greater(x, t) y = Where(c, s, x)",
    "over another number": "z = Mul(x, two) p = Softplus(z) s = Div(p, sharp) c = Greater(z, t) y = Where(c, x, s)",
    "another function": "s = Sigmoid(x) c = Greater(x, t) y = Where(c, x, s)",
}


@pytest.mark.parametrize("nodes", LEFT.values(), ids=LEFT)
def test_other_choices_stay(nodes: str) -> None:
    assert "Where" in read(nodes)


def test_a_threshold_that_makes_a_difference_stays() -> None:
    assert "Where" in read(GUARDED["greater"], threshold=LEAST - 1.0)
    assert "Where" not in read(GUARDED["greater"], threshold=LEAST)


def test_what_is_repeated_stays() -> None:
    assert "Where" in read("r = ReduceMax<axes = [0]>(x) s = Softplus(r) c = Greater(x, t) y = Where(c, x, s)")
