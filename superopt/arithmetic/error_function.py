"""The error function of many numbers at once, which numpy has not.

By W. J. Cody, Rational Chebyshev Approximations for the Error Function, Mathematics of Computation 23 (1969), 631–637:
a quotient of polynomials for small numbers, and one times e^−x² for what lacks of 1 elsewhere.
"""

from __future__ import annotations

import numpy as np

from superopt.arithmetic.carrier import Array

SMALL = 0.46875
LARGE = 6.0
"""From here on it is 1 in 64 bits."""

_NEAR = (
    (
        1.85777706184603153e-1,
        3.16112374387056560e0,
        1.13864154151050156e2,
        3.77485237685302021e2,
        3.20937758913846947e3,
    ),
    (1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3),
)
_FAR = (
    (
        2.15311535474403846e-8,
        5.64188496988670089e-1,
        8.88314979438837594e0,
        6.61191906371416295e1,
        2.98635138197400131e2,
        8.81952221241769090e2,
        1.71204761263407058e3,
        2.05107837782607147e3,
        1.23033935479799725e3,
    ),
    (
        1.0,
        1.57449261107098347e1,
        1.17693950891312499e2,
        5.37181101862009858e2,
        1.62138957456669019e3,
        3.29079923573345963e3,
        4.36261909014324716e3,
        3.43936767414372164e3,
        1.23033935480374942e3,
    ),
)
"""Numerators and denominators, the highest powers first."""

_AT_ONCE = 2**14
"""So many numbers are computed at a time: what is made of them on the way stays in the caches."""


def erf(x: Array) -> Array:
    """`2/√π ∫₀ˣ exp(−t²) dt` of each element, in 64 bits: relative errors are below 4 · 2⁻⁵²."""
    flat = np.ravel(np.asarray(x, np.float64))
    found = np.empty_like(flat)
    for at in range(0, flat.size, _AT_ONCE):
        found[at : at + _AT_ONCE] = _of_some(flat[at : at + _AT_ONCE])
    return found.reshape(np.shape(x))


def _of_some(x: Array) -> Array:
    size = np.minimum(np.abs(x), LARGE)
    far = np.copysign(1.0 - np.exp(-size * size) * _quotient(_FAR, size), x)
    is_small = size <= SMALL
    small: Array = np.where(is_small, x, 0.0)
    found: Array = np.where(is_small, small * _quotient(_NEAR, small * small), far)
    return found


def _quotient(both: tuple[tuple[float, ...], tuple[float, ...]], x: Array) -> Array:
    above, below = (_polynomial(factors, x) for factors in both)
    above /= below
    return above


def _polynomial(factors: tuple[float, ...], x: Array) -> Array:
    """Horner's scheme, in one array."""
    highest, *lower = factors
    found = np.full_like(x, highest)
    for factor in lower:
        found *= x
        found += factor
    return found
