"""What the terms of a size tell of its bounds."""

from __future__ import annotations

from superopt.dim import Dim, Expr, Floor, symbol
from superopt.substitution import rebuild


def nonnegative(dim: Dim, least: int = 1) -> bool:
    """Whether a size is at least 0 for all symbols of at least `least`: False where its terms do not tell."""
    return _exceeds(dim if isinstance(dim, int) else rebuild(dim, lambda name: symbol(name) + least), 1)


def _exceeds(dim: Dim, slack: int) -> bool:
    """Whether a size is more than `-slack` for all symbols of at least 0, as its terms tell. A quotient is at most what
    is divided over the divisor; where that is not enough, it is less than one below it.
    """
    if isinstance(dim, int):
        return dim > -slack
    quotients = [(m, c, m[0]) for m, c in dim.terms if len(m) == 1 and isinstance(m[0], Floor)]
    constant = next((c for m, c in dim.terms if not m), 0)
    falls = any(c < 0 for m, c in dim.terms if m) or constant <= -slack
    for monomial, coefficient, floor in sorted(quotients, key=lambda found: found[1] > 0):
        top, bottom = floor.numerator, floor.denominator
        if isinstance(bottom, int) and falls:
            least = top if coefficient < 0 else top - (bottom - 1)
            return _exceeds((dim - Expr(((monomial, coefficient),))) * bottom + least * coefficient, slack * bottom)
    floors = [atom for monomial, _ in dim.terms for atom in monomial if isinstance(atom, Floor)]
    return not falls and all(_exceeds(part, 1) for floor in floors for part in (floor.numerator, floor.denominator))
