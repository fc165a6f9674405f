"""The symbols in sizes, and sizes with other sizes in their place."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from superopt.dim import Atom, Condition, Dim, Expr, Shape, Symbol, Truth, floor_div, product, symbol
from superopt.relations import relate


def symbols(dim: Dim) -> frozenset[str]:
    """The names of all symbols in a size."""
    if isinstance(dim, int):
        return frozenset()
    found: set[str] = set()
    for monomial, _ in dim.terms:
        for atom in monomial:
            if isinstance(atom, Symbol):
                found.add(atom.name)
            else:
                found |= symbols(atom.numerator) | symbols(atom.denominator)
    return frozenset(found)


def substitute(dim: Dim, values: Mapping[str, Dim]) -> Dim:
    """Replace symbols by sizes; names without a value stay."""
    return dim if isinstance(dim, int) else rebuild(dim, lambda n: values[n] if n in values else symbol(n))


def rebuild(dim: Expr, of_symbol: Callable[[str], Dim]) -> Dim:
    """Evaluate a size, with symbols given by a function."""
    total: Dim = 0
    for monomial, coefficient in dim.terms:
        part: Dim = coefficient
        for atom in monomial:
            value = _atom_value(atom, of_symbol)
            # What the solver has is multiplied by 1 as well: its terms are not simplified, and proofs depend on them.
            plain = isinstance(part, int) and isinstance(value, int | Expr)
            part = value if plain and part == 1 else part * value
        total = total + part
    return total


def substitute_condition(condition: Condition, values: Mapping[str, Dim]) -> Truth:
    """A condition with symbols replaced: decided now, or still a condition."""
    left, right = substitute(condition.left, values), substitute(condition.right, values)
    return relate(condition.relation, left, right)


TYPICAL = 16
"""What an open size is taken for where many numbers are to be worth it, or few to be slower."""


def elements(shape: Shape, size: int = 1) -> int:
    """How many elements a shape has where all symbolic sizes are this one."""
    whole = product(shape)
    found = substitute(whole, dict.fromkeys(symbols(whole), size))
    assert isinstance(found, int)
    return found


def _atom_value(atom: Atom, of_symbol: Callable[[str], Dim]) -> Dim:
    if isinstance(atom, Symbol):
        return of_symbol(atom.name)
    parts = (atom.numerator, atom.denominator)
    top, bottom = (p if isinstance(p, int) else rebuild(p, of_symbol) for p in parts)
    return floor_div(top, bottom)
