"""How far outputs of two models are from each other, and whether what is not finite stands in the same places."""

from __future__ import annotations

import math

import numpy as np

from superopt.arithmetic import Array

REFERENCE_EPS = 32.0
"""How far a value may be from its 64-bit evaluation where the original happens to be nearly exact, in ε."""


def relative_error(found: Array, expected: Array) -> float:
    """The largest difference over the largest magnitude expected, both over finite elements; infinite where one is not.

    Only elements that are finite in `expected` count.
    """
    finite = np.isfinite(expected)
    if not finite.any():
        return 0.0
    wanted = expected[finite].astype(np.float64)
    difference = float(np.abs(found[finite].astype(np.float64) - wanted).max())
    largest = float(np.abs(wanted).max())
    if math.isnan(difference):
        return math.inf
    return difference / largest if largest else (math.inf if difference else 0.0)


def same_special(found: Array, expected: Array, exact: Array | None = None) -> bool:
    """Whether infinities and NaNs stand in the same places.

    Of what overflowed on the way, whether it ended as an infinity or as no number is a matter of the order of
    operations: a sum of infinities is either. It is known by its value in 64 bits, which is finite there, and another
    than what was expected even when it is rounded to that type. There, both must not be finite, and need not be alike.
    """
    if found.shape != expected.shape or not np.array_equal(np.isfinite(found), finite := np.isfinite(expected)):
        return False
    ours, theirs = found[~finite], expected[~finite]
    same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
    if exact is not None and exact.shape == expected.shape:
        same |= _overflowed(theirs, exact[~finite])
    return bool(same.all())


def _overflowed(special: Array, exact: Array) -> Array:
    """Of what is not finite, which elements are so only because something before them was beyond their type."""
    with np.errstate(over="ignore"):
        rounded = exact.astype(special.dtype)
    overflowed: Array = np.isfinite(exact) & (rounded != special)
    return overflowed


def shows_two_values(value: Array) -> bool:
    """Whether elements that stand out from rounding at the largest magnitude differ; a single one shows itself."""
    if not np.issubdtype(value.dtype, np.floating):
        return bool(value.size < 2 or (value != value.flat[0]).any())
    finite = value[np.isfinite(value)].astype(np.float64)
    if finite.size < 2:
        return bool(finite.size)
    resolution = REFERENCE_EPS * float(np.finfo(value.dtype).eps) * np.abs(finite).max()
    seen = finite[np.abs(finite) > resolution]
    return bool(seen.size and (np.abs(seen - seen[0]) > resolution).any())
