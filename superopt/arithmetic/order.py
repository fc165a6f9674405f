"""Small ordered integers, for what depends on order: exact in 64 bits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from superopt.arithmetic.carrier import Array, Carrier, Function
from superopt.arithmetic.hashes import hashed, keep_zero, keyed_hash


class Order(Carrier):
    """Small integers, exact in 64 bits, for what depends on order; quotients and roots are keyed hashes."""

    name = "order"
    dtype = np.int64
    has = frozenset({"order"})

    def sample(self, shape: Sequence[int], rng: np.random.Generator) -> Array:
        """Uniform over ±2 … ±9: a 0 or 1 would make things equal by accident."""
        return np.asarray(
            rng.integers(2, 10, size=tuple(shape)) * rng.choice([-1, 1], size=tuple(shape)), dtype=np.int64
        )

    def constant(self, value: float) -> Array:
        """Integers are themselves, other numbers a keyed hash."""
        whole = float(value).is_integer() and abs(value) < 2**31
        return np.asarray(
            int(value) if whole else self._hash(repr(float(value)), np.zeros((), np.int64)), dtype=np.int64
        )

    def _hash(self, key: str, *arrays: Array) -> Array:
        return keyed_hash(key, *arrays) % 1021 - 510

    def add(self, x: Array, y: Array) -> Array:
        """Sum."""
        return x + y

    def mul(self, x: Array, y: Array) -> Array:
        """Product."""
        return x * y

    def div(self, x: Array, y: Array) -> Array:
        """A keyed hash of both."""
        return self._hash("div", x, y)

    def matmul(self, x: Array, y: Array) -> Array:
        """Matrix product in 64-bit integers."""
        return np.asarray(np.matmul(x, y))

    def total(self, x: Array, axes: tuple[int, ...]) -> Array:
        """Sum."""
        return np.asarray(x.sum(axis=axes))

    def apply(self, function: Function, *arrays: Array) -> Array:
        """Exact where order is all that matters, a keyed hash for the rest."""
        if function.ordered:
            return np.asarray(function.real(*arrays), np.int64)
        return keep_zero(function, arrays, hashed(function, arrays) % 1021 - 510)

    def largest(self, x: Array, axes: tuple[int, ...], present: Array) -> Array:
        """The maximum of the elements that are present."""
        return np.asarray(np.where(present, x, -(2**40)).max(axis=axes))

    def softmax(self, x: Array, axis: int) -> Array:
        """A keyed hash of an element and of the multiset along the axis."""
        powers = self._hash("exp", x)
        return self._hash("softmax", x, np.broadcast_to(powers.sum(axis=axis, keepdims=True), x.shape))


ORDER = Order()
