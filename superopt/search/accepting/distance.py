"""How far outputs of two models are from each other, and whether what is not finite stands in the same places."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from superopt.arithmetic.carrier import Array

REFERENCE_EPS = 32.0
"""How far a value may be from its 64-bit evaluation where the original happens to be nearly exact, in ε."""

BLOCK = 2**15
"""How many elements are looked at together: a quarter of a megabyte in 64 bits."""


def relative_error(found: Array, expected: Array) -> float:
    """The largest difference over the largest magnitude expected, both over finite elements; infinite where one is not.

    Only elements that are finite in `expected` count.
    """
    difference = largest = 0.0
    for ours, wanted in _blocks(found, expected):
        finite = np.isfinite(wanted)
        if not finite.all():
            ours, wanted = ours[finite], wanted[finite]
        apart = float(np.abs(ours - wanted).max(initial=0.0))
        if math.isnan(apart):
            return math.inf
        difference, largest = max(difference, apart), max(largest, float(np.abs(wanted).max(initial=0.0)))
    return difference / largest if largest else (math.inf if difference else 0.0)


def _blocks(*arrays: Array) -> Iterator[tuple[Array, ...]]:
    """Elements of arrays of one shape, in 64 bits, so many at a time that they stay in caches."""
    flat = [array.reshape(-1) for array in arrays]
    for i in range(0, flat[0].size, BLOCK):
        yield tuple(array[i : i + BLOCK].astype(np.float64) for array in flat)


def same_special(found: Array, expected: Array, exact: Array | None = None) -> bool:
    """Whether infinities and NaNs stand in the same places.

    Of what overflowed on the way, whether it ended as an infinity or as no number is a matter of the order of
    operations: a sum of infinities is either. It is known by its value in 64 bits, which is finite there, and another
    than what was expected even when it is rounded to that type. There, both must not be finite, and need not be alike.
    """
    if found.shape != expected.shape or not np.array_equal(np.isfinite(found), finite := np.isfinite(expected)):
        return False
    if finite.all():
        return True
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
    count, largest, first = 0, 0.0, None
    for block in _finite(value):
        count, largest = count + block.size, max(largest, float(np.abs(block).max(initial=0.0)))
    if count < 2:
        return bool(count)
    resolution = REFERENCE_EPS * float(np.finfo(value.dtype).eps) * largest
    for block in _finite(value):
        seen = block[np.abs(block) > resolution]
        if not seen.size:
            continue
        first = seen[0] if first is None else first
        if (np.abs(seen - first) > resolution).any():
            return True
    return False


def _finite(value: Array) -> Iterator[Array]:
    """The finite elements, block by block."""
    for (block,) in _blocks(value):
        yield block[np.isfinite(block)]
