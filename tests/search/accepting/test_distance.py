"""How far outputs are from each other, and where what is no finite number may stand."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from superopt.arithmetic.carrier import Array
from superopt.cost.ort import OnnxRuntime
from superopt.onnx_io import load, understand
from superopt.search.accepting import distance
from superopt.search.accepting.distance import relative_error, same_special, shows_two_values
from superopt.search.accepting.reference import reference_of
from superopt.search.accepting.same import examine
from tests.search.networks import write

INF, NAN = np.inf, np.nan


@pytest.mark.parametrize(
    ("found", "expected", "error"),
    [([1.0, 2.0], [1.0, 2.0], 0.0), ([1.0, 2.2], [1.0, 2.0], 0.1), ([1.0], [0.0], np.inf), ([0.0], [0.0], 0.0)],
)
def test_errors_are_relative_to_the_largest_magnitude(found: list[float], expected: list[float], error: float) -> None:
    assert relative_error(np.array(found), np.array(expected)) == pytest.approx(error)


@pytest.mark.parametrize(
    ("found", "expected", "exact", "same"),
    [
        ([1.0, INF], [1.0, INF], None, True),
        ([1.0, NAN], [1.0, INF], None, False),
        ([1.0, NAN], [1.0, INF], [1.0, 2.0], True),
        ([1.0, -INF], [1.0, NAN], [1.0, 2.0], True),
        ([1.0, -INF], [1.0, INF], [1.0, -2.0], True),
        ([1.0, INF], [1.0, NAN], [1.0, 1e39], True),
        ([1.0, NAN], [1.0, INF], [1.0, 1e39], False),
        ([1.0, NAN], [1.0, INF], [1.0, INF], False),
        ([1.0, INF], [1.0, NAN], [1.0, NAN], False),
        ([1.0, 2.0], [1.0, INF], [1.0, 2.0], False),
        ([1.0, INF], [1.0, 2.0], [1.0, 2.0], False),
        ([1.0, NAN], [1.0, 2.0], [1.0, 2.0], False),
        ([1.0, INF], [INF, 1.0], [1.0, 1.0], False),
        ([1.0, NAN], [1.0, INF], [2.0], False),
    ],
)
def test_only_of_what_overflowed_on_the_way_an_infinity_may_be_no_number(
    found: list[float], expected: list[float], exact: list[float] | None, same: bool
) -> None:
    ours, theirs = np.float32(found), np.float32(expected)
    assert same_special(ours, theirs, None if exact is None else np.float64(exact)) == same


OVERFLOWS = """
g (float[8] x) => (float[8] y, float[8] z) {{ r = Mul (x, big) s = Mul (r, ten) {} y = Mul (d, small) z = Relu (x) }}"""
"""Numbers of more than 0.34 in magnitude overflow on the way to y."""


@pytest.mark.parametrize(
    ("otherwise", "agrees"),
    [("e = Sub (s, s) d = Add (s, e)", True), ("c = Clip (s, low, high) d = Identity (c)", False)],
    ids=["no number where it was infinite", "finite where it was infinite"],
)
def test_a_model_that_overflows_agrees_with_what_is_nowhere_finite_where_it_is_not(
    tmp_path: Path, otherwise: str, agrees: bool
) -> None:
    weights = {"big": 1e38, "ten": 10.0, "small": 1e-30, "low": -3e38, "high": 3e38}
    given = {name: np.array(weight, np.float32) for name, weight in weights.items()}
    original = write(tmp_path / "a.onnx", OVERFLOWS.format("d = Identity (s)"), given)
    candidate = write(tmp_path / "b.onnx", OVERFLOWS.format(otherwise), given)
    reference = reference_of(understand(load(original)))
    found = examine(original, candidate, OnnxRuntime(), reference)
    assert (found.agrees, found.examined) == (agrees, True), found.reason
    assert not examine(original, candidate, OnnxRuntime()).agrees, "without values in 64 bits nothing tells an overflow"


FLOATS = st.one_of(st.sampled_from([0.0, 1.0, -1.0, 1e-9, INF, -INF, NAN]), st.floats(-4, 4, width=32))
PAIRS = arrays(np.float32, st.tuples(st.just(2), st.integers(0, 9)), elements=FLOATS)


@given(PAIRS)
def test_the_error_is_the_same_block_by_block_as_at_once(pair: Array) -> None:
    found, expected = pair
    at_once = relative_error(found, expected)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distance, "BLOCK", 2)
        assert relative_error(found, expected) == at_once


@given(PAIRS)
def test_two_values_are_seen_block_by_block_as_at_once(pair: Array) -> None:
    at_once = shows_two_values(pair)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distance, "BLOCK", 2)
        assert shows_two_values(pair) == at_once
