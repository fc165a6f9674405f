"""Sizes that are open, taken for a typical one where finders weigh what is more work."""

from __future__ import annotations

from collections.abc import Sequence

from superopt.dim import Dim, product
from superopt.substitution import substitute, symbols

TYPICAL = 16
"""What a size is taken for that is open."""


def elements(sizes: Sequence[Dim]) -> int:
    """The product of sizes."""
    whole = product(sizes)
    found = substitute(whole, dict.fromkeys(symbols(whole), TYPICAL))
    assert isinstance(found, int)
    return found
