"""The most general typing of terms of one value: the equalities between sizes that they need, solved (unification)."""

from __future__ import annotations

from collections.abc import Iterator

from superopt.dim import Condition, Expr, Floor, equal
from superopt.errors import ShapeError
from superopt.operators.solved_sizes import unify
from superopt.operators.symbolic import all_symbols, conditions, positive_symbols, resize
from superopt.relations import are_equal
from superopt.term import Term, size_symbols


def typed(*roots: Term, by_numerators: bool = False) -> tuple[Term, ...]:
    """Terms of one value, with the equalities between sizes that they need solved; those of quotients `by_numerators`,
    which may be more than they need. Raises `ShapeError` where none would do.
    """
    for _ in range(8):
        asked = [*conditions(*roots)]
        for other in roots[1:]:
            asked += _of_one_shape(roots[0], other)
        asked += [n for c in asked if by_numerators and (n := _numerators(c)) is not None]
        values, _ = unify(asked, _order(roots), positive_symbols(*roots))
        if not values:
            return roots
        roots = resize(roots, values)
    return roots


def _of_one_shape(term: Term, other: Term) -> Iterator[Condition]:
    if term.type.rank != other.type.rank:
        raise ShapeError(f"ranks differ: {term.type} and {other.type}")
    for a, b in zip(term.shape, other.shape, strict=True):
        truth = equal(a, b)
        if truth is False:
            raise ShapeError(f"shapes differ: {term.shape} and {other.shape}")
        if isinstance(truth, Condition):
            yield truth


def _numerators(asked: Condition) -> Condition | None:
    """That what is divided by one size is equal, where two quotients have to be."""
    difference = asked.left - asked.right if asked.relation == "=" else 0
    terms = difference.terms if isinstance(difference, Expr) else ()
    quotients = [m[0] for m, _ in terms if len(m) == 1 and isinstance(m[0], Floor)]
    if len(quotients) != len(terms) or sorted(k for _, k in terms) != [-1, 1]:
        return None
    a, b = quotients
    same = equal(a.numerator, b.numerator) if are_equal(a.denominator, b.denominator) else None
    return same if isinstance(same, Condition) else None


def _order(roots: tuple[Term, ...]) -> list[str]:
    """Symbols of variables first (kept longest), then those of attributes; those of broadcasts are not kept."""
    dims = size_symbols(*roots)
    names = all_symbols(*roots)
    return sorted(n for n in names if n in dims) + [n for n in names if n not in dims and not n.startswith("_")]
