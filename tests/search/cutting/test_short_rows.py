"""What is computed of each element of short rows is in one piece, with what shows it in another way."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from benchmarks.sketch import Sketch
from superopt.arithmetic.carrier import Array
from superopt.onnx_io import load, understand
from superopt.operators.layout import Reshape
from superopt.operators.pointwise import Mul
from superopt.search.cutting.pieces import cut_into_pieces
from superopt.term import subterms

ROWS, KNOTS, STEPS = 4, 8, 6


def row(count: int) -> Array:
    """A number for each knot."""
    return np.random.default_rng(count).standard_normal(count).astype(np.float32)


def spline(s: Sketch, knots: int, last: bool) -> onnx.ModelProto:
    """Numbers that are compared with knots, weighed and taken in parts, as often as there are steps."""
    x = s.input("x", ROWS)
    own = s("Unsqueeze", s("Sigmoid", x), s.weight(np.array([1])))
    value = s("Sub", own, s.weight(row(knots)))
    for step in range(1, STEPS):
        begin, end, one = (s.weight(np.array([n])) for n in (0, knots - step, 1))
        far = s.weight(np.array([knots - step + 1]))
        parts = s("Slice", value, begin, end, one), s("Slice", value, one, far, one)
        scaled = s("Mul", s("Sub", own, s.weight(row(knots - step))), parts[0])
        value = s("Add", scaled, s("Mul", s("Sub", s.weight(row(knots - step)), own), parts[1]))
    value = s("Reshape", value, s.weight(np.array([-1])))
    for step in () if last else ("Sigmoid", "Elu", "Tanh") * 4:
        value = s(step, value)
    return s.model(value)


@pytest.mark.parametrize("last", [True, False])
def test_no_cut_parts_what_is_turned_as_a_whole(last: bool) -> None:
    pieces = cut_into_pieces(understand(load(spline(Sketch(), KNOTS, last))))
    products = [{t for t in subterms(*p.graph.outputs) if isinstance(t.operator, Mul)} for p in pieces]
    assert max(map(len, products)) == 2 * (STEPS - 1)
    (whole,) = (p for p in pieces if any(isinstance(t.operator, Reshape) for t in p.graph.outputs) or last)
    assert len({t for t in subterms(*whole.graph.outputs) if isinstance(t.operator, Mul)}) == 2 * (STEPS - 1)


def test_longer_rows_are_cut_as_all_else() -> None:
    pieces = cut_into_pieces(understand(load(spline(Sketch(), 4 * KNOTS, last=True))))
    assert len(pieces) > 1
