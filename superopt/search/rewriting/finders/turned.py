"""Axes in another order."""

from __future__ import annotations

from collections.abc import Sequence

from superopt.operators.layout import Transpose
from superopt.term import Term


def turned(x: Term, perm: Sequence[int]) -> Term:
    """`x` with axis perm[a] as axis a; itself where that is its own order."""
    return x if list(perm) == list(range(len(perm))) else Transpose(tuple(perm))(x)
