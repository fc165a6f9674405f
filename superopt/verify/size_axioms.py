"""What the solver is told of sizes: that they are positive, and the little that it knows of products and quotients."""

from __future__ import annotations

from functools import cache
from typing import Any

from superopt.dim import Dim, Expr, Shape, product
from superopt.verify.encode import encode_dim
from superopt.verify.function_symbols import (
    Z3,
    Ints,
    multiple_of,
    product_of,
    quotient_of,
    size_function,
    sort,
    well_formed,
)


@cache
def all_sizes_positive(rank: int) -> list[Any]:
    """Every size of a well formed tensor is at least 1."""
    x = Z3.Const("x", sort(rank))
    sizes = [size_function(rank, axis)(x) for axis in range(rank)]
    return (
        [Z3.ForAll([x], Z3.Implies(well_formed(rank)(x), Z3.And([s >= 1 for s in sizes])), patterns=sizes)]
        if rank
        else []
    )


@cache
def arithmetic_axioms() -> list[Any]:
    """The little that is known of the uninterpreted: division by one; products commute, cancel and are positive."""
    a, b, c = Z3.Ints("a b c")
    cancels = Z3.Implies(Z3.And(a >= 1, product_of(a, b) == product_of(a, c)), b == c)
    return [
        Z3.ForAll([a, b], Z3.Implies(b == 1, quotient_of(a, b) == a), patterns=[quotient_of(a, b)]),
        Z3.ForAll([a, b], Z3.Implies(a == 1, multiple_of(a, b)), patterns=[multiple_of(a, b)]),
        Z3.ForAll([a, b], Z3.Implies(a == b, multiple_of(a, b)), patterns=[multiple_of(a, b)]),
        Z3.ForAll([a, b], product_of(a, b) == product_of(b, a), patterns=[product_of(a, b)]),
        Z3.ForAll([a, b], Z3.Implies(a == 1, product_of(a, b) == b), patterns=[product_of(a, b)]),
        Z3.ForAll([a, b], Z3.Implies(Z3.And(a >= 1, b >= 1), product_of(a, b) >= 1), patterns=[product_of(a, b)]),
        Z3.ForAll([a, b], Z3.Implies(Z3.And(a >= 1, product_of(a, b) == a), b == 1), patterns=[product_of(a, b)]),
        Z3.ForAll([a, b, c], cancels, patterns=[Z3.MultiPattern(product_of(a, b), product_of(a, c))]),
    ]


def distributes(dim: Dim, ints: Ints) -> list[Any]:
    """That a product with a size that is a sum is the sum of the products."""
    parts = [Expr((part,)) for part in dim.terms if part[0]] if isinstance(dim, Expr) else []
    if len(parts) < 2:
        return []
    a, whole = Z3.Int("any factor"), encode_dim(dim, ints)  # no symbol of a rule is called so
    number = dim - sum(parts[1:], parts[0])
    products = [product_of(a, encode_dim(p, ints)) for p in parts] + [a * encode_dim(number, ints)]
    return [Z3.ForAll([a], product_of(a, whole) == Z3.Sum(products), patterns=[product_of(a, whole)])]


def total(shape: Shape, ints: Ints) -> Any:
    """That the product of sizes, one after the other as shape rules take it, is what it is in normal form."""
    value = Z3.IntVal(1)
    for i, dim in enumerate(shape):
        value = product_of(value, encode_dim(dim, ints)) if i else encode_dim(dim, ints)
    return value == encode_dim(product(shape), ints)
