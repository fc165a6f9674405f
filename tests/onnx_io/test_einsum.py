"""Einsum means what numpy says it means."""

from __future__ import annotations

import numpy as np
import pytest

from superopt.arithmetic.floats import FLOAT
from superopt.evaluate import evaluate
from superopt.onnx_io import load, understand
from tests.onnx_io.models import model

SIZES = {"a": 2, "b": 3, "c": 4, "d": 5}

EQUATIONS = {
    "ab,bc->ac": ["ab", "bc"],
    "ab,bc,cd->ad": ["ab", "bc", "cd"],
    "abc,acd->abd": ["abc", "acd"],
    "ab,cd->dbca": ["ab", "cd"],
    "ab->ba": ["ab"],
    "abc->b": ["abc"],
    "a,b,c": ["a", "b", "c"],
    "ab,b->a": ["ab", "b"],
    "ab,cb,c->a": ["ab", "cb", "c"],
    "...ab,...bc->...ac": ["dab", "dbc"],
    "...ab,bc->...ac": ["cdab", "bc"],
    "...a->...": ["dba"],
    "...a,...a": ["ba", "ba"],
    "a...,b...->ab...": ["ad", "bd"],
}
"""By equation, the axes of the inputs by the sizes that they have."""


@pytest.mark.parametrize("equation", EQUATIONS)
def test_an_einsum_is_read_as_terms_of_its_value(equation: str) -> None:
    shapes = [tuple(SIZES[a] for a in axes) for axes in EQUATIONS[equation]]
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape) for shape in shapes]
    expected = np.einsum(equation, *arrays)
    given = ", ".join(f"double[{', '.join(map(str, s))}] x{i}" for i, s in enumerate(shapes))
    names = ", ".join(f"x{i}" for i in range(len(shapes)))
    to = ", ".join(map(str, expected.shape))
    program = understand(
        load(model(f'g ({given}) => (double[{to}] y) {{ y = Einsum<equation = "{equation}">({names}) }}'))
    )
    assert program.summary.opaque == {}
    values = {program.values[f"x{i}"]: array for i, array in enumerate(arrays)}
    np.testing.assert_allclose(evaluate(program.steps[0].terms[0], FLOAT, values), expected, rtol=1e-12, atol=1e-12)


def test_a_diagonal_is_opaque() -> None:
    program = understand(load(model('g (double[2, 2] x) => (double[2] y) { y = Einsum<equation = "ii->i">(x) }')))
    assert program.steps[0].reason == "einsum ii->i: an axis twice in one input"
