"""Sizes that are open, taken for a typical one where finders weigh what is more work."""

from __future__ import annotations

from collections.abc import Sequence

from superopt import substitution
from superopt.dim import Dim


def elements(sizes: Sequence[Dim]) -> int:
    """The product of sizes."""
    return substitution.elements(tuple(sizes), substitution.TYPICAL)
