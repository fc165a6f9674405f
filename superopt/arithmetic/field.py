"""A prime field, for all that is made of sums, products and quotients: exact at true sizes.

Agreement of two different polynomials of degree d at random elements of the field has probability at most d/p
(Schwartz 1980, Zippel 1979): evidence, never proof. A disagreement is a counterexample.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from superopt.arithmetic.carrier import Array, Carrier, Function
from superopt.arithmetic.hashes import hashed, keep_zero, keyed_hash

PRIME = 2**31 - 1


EXP = Function("exp", np.exp)


class Field(Carrier):
    """Integers modulo the prime 2³¹ − 1, for all that is made of sums, products and quotients."""

    name = "field"
    dtype = np.int64
    has = frozenset({"div"})

    def sample(self, shape: Sequence[int], rng: np.random.Generator) -> Array:
        """Uniform over the non-zero elements."""
        return rng.integers(1, PRIME, size=tuple(shape), dtype=np.int64)

    def constant(self, value: float) -> Array:
        """A float is a dyadic rational, so it has an exact image: numerator over denominator. Else a hash."""
        if not math.isfinite(value):
            return np.asarray(keyed_hash(repr(value), np.zeros((), np.int64)) % PRIME, dtype=np.int64)
        top, bottom = float(value).as_integer_ratio()
        return np.asarray(top * pow(bottom, -1, PRIME) % PRIME, dtype=np.int64)

    def add(self, x: Array, y: Array) -> Array:
        """Sum modulo p."""
        return (x + y) % PRIME

    def mul(self, x: Array, y: Array) -> Array:
        """Product modulo p; 62 bits at most before reduction."""
        return x * y % PRIME

    def div(self, x: Array, y: Array) -> Array:
        """Product with the inverse, y^(p−2)."""
        inverse, power, exponent = np.ones_like(y), y, PRIME - 2
        while exponent:
            if exponent & 1:
                inverse = inverse * power % PRIME
            power = power * power % PRIME
            exponent >>= 1
        return x * inverse % PRIME

    def matmul(self, x: Array, y: Array) -> Array:
        """Four float products of 16-bit halves: exact while the contracted axis is shorter than 2²¹, at BLAS speed."""
        assert x.shape[-1] < 2**21, "sums of 32-bit products would pass 2^53"
        low, high = (x & 0xFFFF).astype(np.float64), (x >> 16).astype(np.float64)
        low2, high2 = (y & 0xFFFF).astype(np.float64), (y >> 16).astype(np.float64)
        parts = [np.matmul(a, b).astype(np.int64) % PRIME for a in (high, low) for b in (high2, low2)]
        middle = (parts[1] + parts[2]) % PRIME
        return np.asarray(((parts[0] * 2**16 + middle) % PRIME * 2**16 + parts[3]) % PRIME)

    def total(self, x: Array, axes: tuple[int, ...]) -> Array:
        """Sum modulo p."""
        return np.asarray(x.sum(axis=axes) % PRIME)

    def apply(self, function: Function, *arrays: Array) -> Array:
        """A keyed hash, that keeps zero where the function does."""
        return keep_zero(function, arrays, hashed(function, arrays) % PRIME)

    def largest(self, x: Array, axes: tuple[int, ...], present: Array) -> Array:
        """A keyed hash of the multiset of elements: order along the axes does not matter."""
        hashes = np.where(present, keyed_hash("largest", x) % PRIME, 0)
        return keyed_hash("of largest", hashes.sum(axis=axes)) % PRIME

    def softmax(self, x: Array, axis: int) -> Array:
        """With a keyed hash for exp, and the true sum and quotient."""
        powers = self.apply(EXP, x)
        return self.div(powers, np.broadcast_to(powers.sum(axis=axis, keepdims=True) % PRIME, powers.shape))


class PartialField(Field):
    """The field for those who look for equal terms: what has no value is equal to nothing but by accident."""

    def div(self, x: Array, y: Array) -> Array:
        """By 0, a hash."""
        quotient, undefined = super().div(x, y), y == 0
        return np.where(undefined, keyed_hash("div", x, y) % PRIME, quotient) if undefined.any() else quotient


FIELD = Field()
PARTIAL = PartialField()
