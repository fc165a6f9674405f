"""Terms, sizes and conditions as the solver sees them.

Quantities that are not linear (products of sizes, divisions by a size) are left uninterpreted where z3 would need
non-linear reasoning: that loses proofs, never soundness.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from superopt.dim import Condition, Dim, Floor, Symbol
from superopt.operators.declared import Declared
from superopt.term import Term
from superopt.verify.function_symbols import Z3, Ints, applied, head_of, multiple_of, product_of, quotient_of


def encode_dim(dim: Dim, ints: Ints) -> Any:
    """A size over the solver's integers. Products of symbols are nested `product`s in one order of factors."""
    if isinstance(dim, int):
        return Z3.IntVal(dim)
    parts = []
    for monomial, coefficient in dim.terms:
        factors = [_encode_atom(atom, ints) for atom in monomial]
        value = None
        for factor in sorted(factors, key=str) if len(factors) > 1 else factors:
            value = factor if value is None else product_of(value, factor)
        parts.append(Z3.IntVal(coefficient) if value is None else value if coefficient == 1 else coefficient * value)
    return parts[0] if len(parts) == 1 else Z3.Sum(parts)


def _encode_atom(atom: Symbol | Floor, ints: Ints) -> Any:
    if isinstance(atom, Symbol):
        return ints[atom.name]
    numerator = encode_dim(atom.numerator, ints)
    if isinstance(atom.denominator, int):
        return numerator / atom.denominator  # z3's division of integers rounds down for positive divisors
    return quotient_of(numerator, encode_dim(atom.denominator, ints))


def encode_condition(condition: Condition, ints: Ints) -> Any:
    """A relation between sizes."""
    left, right = encode_dim(condition.left, ints), encode_dim(condition.right, ints)
    match condition.relation:
        case "=":
            return left == right
        case "<=":
            return left <= right
        case "!=":
            return left != right
        case "divides":
            return right % condition.left == 0 if isinstance(condition.left, int) else multiple_of(left, right)


def encode_term(term: Term, tensors: Mapping[Term, Any], ints: Ints, known: dict[Term, Any] | None = None) -> Any:
    """A term over the solver's tensors and integers."""
    if term in tensors:
        return tensors[term]
    known = {} if known is None else known
    if term not in known:
        op = term.operator
        assert isinstance(op, Declared)
        inputs = [encode_term(i, tensors, ints, known) for i in term.inputs]
        arguments = [encode_dim(d, ints) for d in op.sizes()] + inputs
        known[term] = applied(head_of(term), arguments)
    return known[term]
