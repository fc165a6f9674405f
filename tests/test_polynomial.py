"""Polynomials as terms: they compute what integers do, and are divided only where that is exact."""

from __future__ import annotations

import math
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from superopt.polynomial import Terms, degree, exact_quotient, multiplied, ordered, summed, term_text

MONOMIALS = st.lists(st.sampled_from("xyz"), max_size=3).map(lambda atoms: tuple(sorted(atoms)))
POLYNOMIALS = st.dictionaries(MONOMIALS, st.integers(-9, 9), max_size=4).map(ordered)
VALUES = st.fixed_dictionaries({name: st.integers(-9, 9) for name in "xyz"})


def value(terms: Terms[str], at: Mapping[str, int]) -> int:
    """What a polynomial is where its atoms have these values."""
    return sum(coefficient * math.prod(at[atom] for atom in monomial) for monomial, coefficient in terms)


@given(POLYNOMIALS, POLYNOMIALS, VALUES)
def test_sums_differences_and_products_have_the_values_of_integers(
    p: Terms[str], q: Terms[str], at: dict[str, int]
) -> None:
    assert value(summed(p, q), at) == value(p, at) + value(q, at)
    assert value(summed(p, q, -1), at) == value(p, at) - value(q, at)
    assert value(multiplied(p, q), at) == value(p, at) * value(q, at)


@given(POLYNOMIALS, POLYNOMIALS)
def test_equal_polynomials_are_equal_terms_however_they_were_made(p: Terms[str], q: Terms[str]) -> None:
    assert summed(p, q) == summed(q, p)
    assert multiplied(p, q) == multiplied(q, p)
    assert summed(summed(p, q), q, -1) == p


@given(POLYNOMIALS, POLYNOMIALS)
def test_a_product_is_divided_by_its_factors(p: Terms[str], q: Terms[str]) -> None:
    assert exact_quotient(multiplied(p, q), q) == (p if q else None)


@given(POLYNOMIALS, POLYNOMIALS)
def test_what_is_divided_is_what_the_quotient_gives_with_the_divisor(p: Terms[str], q: Terms[str]) -> None:
    quotient = exact_quotient(p, q)
    assert quotient is None or multiplied(quotient, q) == p


def test_a_division_that_leaves_something_has_no_quotient() -> None:
    x, y = ((("x",), 1),), ((("y",), 1),)
    for dividend, divisor in ((x, y), (summed(x, y), x), (x, multiplied(x, x)), (x, ((("x",), 2),)), (x, ())):
        assert exact_quotient(dividend, divisor) is None


def test_terms_stand_by_degree_then_by_name_and_are_written_so() -> None:
    terms = ordered({(): 3, ("y",): 1, ("x",): -2, ("x", "y"): 1, ("z",): 0})
    assert [term_text(*term) for term in terms] == ["(* x y)", "(* -2 x)", "y", "3"]
    assert degree(terms) == 2
    assert degree(()) == 0
