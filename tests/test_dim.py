"""Sizes: polynomials that agree with integer arithmetic, and comparisons that never guess."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from superopt.bounds import nonnegative
from superopt.demands import require
from superopt.dim import Condition, Dim, at_most, equal, floor_div, product, symbol
from superopt.errors import ShapeError, Undecided
from superopt.operators.reader import dim_sexp, read_dim
from superopt.relations import divides, relate
from superopt.substitution import substitute, substitute_condition, symbols
from superopt.text import read, show

N, M = symbol("n"), symbol("m")
NAMES = ("n", "m", "k")
VALUES = st.fixed_dictionaries({name: st.integers(1, 50) for name in NAMES})

Meaning = Callable[[dict[str, int]], int]
"""What a size is at given values of its symbols, computed with integers only."""


def _joined(parts: st.SearchStrategy[tuple[Dim, Meaning]]) -> st.SearchStrategy[tuple[Dim, Meaning]]:
    def join(a: tuple[Dim, Meaning], how: str, b: tuple[Dim, Meaning]) -> tuple[Dim, Meaning]:
        (d, f), (e, g) = a, b
        if how == "+":
            return d + e, lambda v: f(v) + g(v)
        if how == "-":
            return d - e, lambda v: f(v) - g(v)
        return d * e, lambda v: f(v) * g(v)

    def divide(a: tuple[Dim, Meaning], by: int | str) -> tuple[Dim, Meaning]:
        d, f = a
        below = symbol(by) if isinstance(by, str) else by
        return floor_div(d, below), lambda v: f(v) // (v[by] if isinstance(by, str) else by)

    divisor = st.one_of(st.integers(1, 9), st.integers(-9, -1), st.sampled_from(NAMES))
    return st.builds(join, parts, st.sampled_from("+-*"), parts) | st.builds(divide, parts, divisor)


LEAVES = st.one_of(
    st.integers(-9, 9).map(lambda c: (c, lambda v: c)),
    st.sampled_from(NAMES).map(lambda n: (symbol(n), lambda v: v[n])),
)
SIZES = st.recursive(LEAVES, _joined, max_leaves=8)
MANY = settings(max_examples=300, deadline=None, derandomize=True)


@MANY
@given(SIZES, VALUES)
def test_substituting_all_symbols_equals_integer_arithmetic(size: tuple[Dim, Meaning], values: dict[str, int]) -> None:
    dim, meaning = size
    assert substitute(dim, values) == meaning(values)


@MANY
@given(SIZES, VALUES)
def test_substituting_one_symbol_after_the_other_gives_the_same(
    size: tuple[Dim, Meaning], values: dict[str, int]
) -> None:
    dim, meaning = size
    for name, value in values.items():
        dim = substitute(dim, {name: value})
    assert isinstance(dim, int)
    assert dim == meaning(values)


@MANY
@given(SIZES)
def test_a_size_reads_back_from_its_text(size: tuple[Dim, Meaning]) -> None:
    (sexp,) = read(show(dim_sexp(size[0])))
    assert read_dim(sexp) is size[0] or read_dim(sexp) == size[0]


@MANY
@given(SIZES, SIZES, VALUES)
def test_what_is_decided_about_symbols_holds_for_integers(
    left: tuple[Dim, Meaning], right: tuple[Dim, Meaning], values: dict[str, int]
) -> None:
    a, b = left[1](values), right[1](values)
    truths = {"=": a == b, "!=": a != b, "<=": a <= b, "divides": b == 0 if a == 0 else b % a == 0}
    for relation, truth in truths.items():
        answer = relate(relation, left[0], right[0])  # type: ignore[arg-type]
        if isinstance(answer, Condition):
            answer = substitute_condition(answer, values)
        assert answer is truth, relation


@pytest.mark.parametrize(
    "truth",
    [equal(N, M), at_most(N, M), divides(N, M), divides(2, N), N == M, N != M, N < M, N <= M, N > M, N >= M, N == 3],
    ids=str,
)
def test_a_comparison_that_symbols_leave_open_cannot_be_branched_on(truth: object) -> None:
    assert isinstance(truth, Condition)
    with pytest.raises(Undecided):
        bool(truth)


def test_a_size_is_no_truth_value() -> None:
    with pytest.raises(Undecided):
        bool(N)


@pytest.mark.parametrize(
    ("truth", "expected"),
    [
        (N + M == M + N, True),
        (N == N + 1, False),
        (N < N + 1, True),
        (N + 2 <= N + 1, False),
        (N != N + 1, True),
        (divides(2, 4 * N + 6), True),
        (divides(N, N * M), True),
        (divides(3, 4), False),
        (divides(0, 3), False),
        (divides(0, 0), True),
    ],
)
def test_a_comparison_whose_difference_is_a_number_is_decided(truth: object, expected: bool) -> None:
    assert truth is expected


def test_a_demand_that_is_undecided_raises_and_one_that_is_false_names_its_reason() -> None:
    with pytest.raises(Undecided, match="widths differ"):
        require(N == M, "widths differ")
    with pytest.raises(ShapeError, match="widths differ"):
        require(N == N + 1, "widths differ")


def test_equal_polynomials_are_one_object() -> None:
    assert (N + M) * (N - M) is N * N - M * M
    assert (N + 1) - 1 is N
    assert product([N, 2, M]) is 2 * M * N
    assert floor_div(4 * N + 2 * M, 2) is 2 * N + M


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (floor_div(floor_div(N, 2), 2), floor_div(N, 4)),
        (floor_div(floor_div(N - 1, 2) + M, 3), floor_div(N - 1 + 2 * M, 6)),
        (floor_div(N - 1, 2) + 1, floor_div(N + 1, 2)),
        (floor_div(floor_div(N - 1, 2), 2) + 1, floor_div(N + 3, 4)),
        (floor_div(2 * N + 1, 4), floor_div(N, 2)),
        (floor_div(6 * N + 3 * M + 8, 9), floor_div(2 * N + M + 2, 3)),
    ],
)
def test_a_division_by_a_number_is_one_object_however_it_is_written(one: Dim, other: Dim) -> None:
    assert one is other


def test_divisions_that_differ_are_told_apart_without_deciding_sizes() -> None:
    assert len({floor_div(N * c, M) for c in range(-9, 10)} | {floor_div(M * c, 5) for c in range(-9, 10)}) > 30
    assert floor_div(floor_div(N, 2) * floor_div(M, 2), floor_div(M, 2)) is floor_div(N, 2)


def test_pickling_a_size_gives_the_same_object() -> None:
    size = floor_div(N * M + 3, 2) + N
    assert pickle.loads(pickle.dumps(size)) is size


def test_a_division_by_zero_is_an_error_that_says_so() -> None:
    with pytest.raises(ShapeError, match="divided by 0"):
        floor_div(N, 0)
    with pytest.raises(ShapeError, match="divided by 0"):
        substitute(floor_div(N, M + 1), {"m": -1})


def test_the_symbols_of_a_size_are_those_under_its_divisions_too() -> None:
    assert symbols(floor_div(N * 3, M) + symbol("k")) == {"n", "m", "k"}


def test_a_size_that_cannot_be_negative_is_known_to_be_so() -> None:
    assert all(map(nonnegative, (N - 1, N * M - 1, floor_div(N - 1, 3), N - floor_div(N, 2), 2 * M - floor_div(M, 1))))


def test_what_a_size_halved_twice_is_short_of_is_no_negative_size() -> None:
    half, quarter = floor_div(N, 2), floor_div(floor_div(N, 2), 2)
    assert nonnegative(half - 2 * quarter)
    assert floor_div(half - 2 * quarter, 2) == 0, "it is 0 or 1, as a U-Net pads by"
    assert nonnegative(half - floor_div(N, 3))
    assert not nonnegative(2 * quarter - half)


@MANY
@given(SIZES, VALUES)
def test_what_is_known_not_to_be_negative_is_not(size: tuple[Dim, Meaning], values: dict[str, int]) -> None:
    dim, meaning = size
    assert not nonnegative(dim) or meaning(values) >= 0
