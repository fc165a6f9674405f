"""Constants come to data that is finite, but for infinite numbers that they state."""

from __future__ import annotations

import math

import numpy as np
import pytest

from superopt.onnx_io.folding import folded
from superopt.operators import NotUnderstood
from superopt.operators.constant import filled
from superopt.operators.logic import Where
from superopt.operators.pointwise import Add, Mul
from superopt.term import TRUTH, Term, variable

C = variable("c", (2,), TRUTH, constant=True)
A = variable("a", (2,), "float32", constant=True)
GIVEN = {C: np.array([True, False]), A: np.array([1e30, 1e30], np.float32)}
LOW = filled(-math.inf, (2,))


def test_what_masks_by_minus_infinity_is_data() -> None:
    made = folded(Where()(C, LOW, A), "float32", GIVEN)
    np.testing.assert_array_equal(made, np.array([-np.inf, 1e30], np.float32))


REFUSED = {
    "too large": Mul()(A, A),
    "too large beside minus infinity": Where()(C, LOW, Mul()(A, A)),
    "no number": Where()(C, Mul()(LOW, filled(0.0, (2,))), A),
    "infinity that is not stated": Mul()(LOW, filled(-1.0, (2,))),
}


@pytest.mark.parametrize("term", REFUSED.values(), ids=REFUSED)
def test_else_what_is_not_finite_is_refused(term: Term) -> None:
    with pytest.raises(NotUnderstood, match="do not fit into their type"), np.errstate(invalid="ignore"):
        folded(term, "float32", GIVEN)


def test_infinite_numbers_may_be_added_up() -> None:
    np.testing.assert_array_equal(folded(Add()(LOW, A), "float32", GIVEN), [-np.inf, -np.inf])
