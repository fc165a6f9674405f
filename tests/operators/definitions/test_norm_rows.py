"""A layer norm of all rows below each other is the norm itself, of any sizes."""

from __future__ import annotations

import numpy as np
import pytest

from superopt.arithmetic.floats import FLOAT
from superopt.demands import assuming
from superopt.dim import symbol
from superopt.evaluate import evaluate
from superopt.operators.definitions.norm_rows import of_rows
from superopt.operators.norms import LayerNorm
from superopt.term import Term, make, variable


def inputs(shape: tuple[int, ...], axis: int) -> list[Term]:
    return [variable(n, s) for n, s in (("x", shape), ("g", shape[axis:]), ("b", shape[axis:]))]


@pytest.mark.parametrize(("shape", "axis"), [((2, 3, 4), 2), ((1, 5, 8), 2), ((2, 3, 4, 5), 2), ((2, 3, 4, 5), 3)])
def test_it_computes_the_same(shape: tuple[int, ...], axis: int) -> None:
    op, given = LayerNorm(axis, 1e-5), inputs(shape, axis)
    made, rng = of_rows(op, *given), np.random.default_rng(0)
    assert made is not None
    assert made.type == make(op, given).type
    data = {v: rng.standard_normal([int(str(d)) for d in v.shape]) for v in given}
    np.testing.assert_array_equal(evaluate(made, FLOAT, data), evaluate(make(op, given), FLOAT, data))


def test_rows_of_two_axes_stay() -> None:
    assert of_rows(LayerNorm(1, 1e-5), *inputs((3, 4), 1)) is None


def test_it_holds_for_symbolic_sizes() -> None:
    b, s = symbol("b"), symbol("s")
    with assuming():
        made = of_rows(LayerNorm(2, 1e-5), variable("x", (b, s, 8)), variable("g", (8,)), variable("c", (8,)))
    assert made is not None
    assert [str(d) for d in made.shape] == ["b", "s", "8"]
    assert str(made.inputs[0].shape[0]) == "(* b s)"
