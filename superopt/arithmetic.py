"""The carriers that operators are evaluated in: a prime field, small ordered integers, and 64-bit floats.

Every operator has a meaning in every carrier. Where a carrier cannot express a function, it takes a *keyed hash* of the
arguments in its place: equal arguments give equal values and nothing more is known, so two terms that agree there agree
whatever the function is. Agreement of two different polynomials of degree d at random elements of the field has
probability at most d/p (Schwartz 1980, Zippel 1979): evidence, never proof. A disagreement is a counterexample.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

PRIME = 2**31 - 1
_MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Function:
    """A function of real numbers, taken of each element; two of one name are the same function.

    `zero` says that of zeros it is zero, `ordered` that it is made of comparisons and sums, so that it is exact over
    integers, `commutative` that its arguments may be swapped.
    """

    name: str
    real: Callable[..., Array]
    zero: bool = False
    ordered: bool = False
    commutative: bool = False


class Carrier:
    """Arithmetic over arrays. `apply` is for functions of one value, `largest` and `softmax` reduce an axis."""

    name: str
    dtype: type[np.generic]
    has: frozenset[str]
    """What it can express besides sums and products: `div`, `order`, `root`, `exp`; the rest are keyed hashes."""

    def sample(self, shape: Sequence[int], rng: np.random.Generator) -> Array:
        """A random array of the carrier."""
        raise NotImplementedError

    def constant(self, value: float) -> Array:
        """A number as a rank-0 array."""
        raise NotImplementedError

    def add(self, x: Array, y: Array) -> Array:
        """Element-wise sum."""
        raise NotImplementedError

    def mul(self, x: Array, y: Array) -> Array:
        """Element-wise product."""
        raise NotImplementedError

    def div(self, x: Array, y: Array) -> Array:
        """Element-wise quotient."""
        raise NotImplementedError

    def matmul(self, x: Array, y: Array) -> Array:
        """Matrix product over the last two axes; the others broadcast."""
        raise NotImplementedError

    def total(self, x: Array, axes: tuple[int, ...]) -> Array:
        """Sum over axes."""
        raise NotImplementedError

    def apply(self, function: Function, *arrays: Array) -> Array:
        """A function of elements of arrays of one shape."""
        raise NotImplementedError

    def largest(self, x: Array, axes: tuple[int, ...], present: Array) -> Array:
        """The maximum over axes of the elements that are `present` (a mask that broadcasts)."""
        raise NotImplementedError

    def softmax(self, x: Array, axis: int) -> Array:
        """exp(x) over its sum along an axis."""
        raise NotImplementedError


EXP = Function("exp", np.exp)


def keyed_hash(key: str, *arrays: Array) -> Array:
    """63-bit hashes of the elements of arrays that broadcast, different for each key and each argument position."""
    state = np.asarray(np.uint64(zlib.crc32(key.encode())))
    with np.errstate(over="ignore"):  # the products are meant to wrap
        for array in arrays:
            state = (state ^ array.astype(np.int64).view(np.uint64)) * _MIX + np.uint64(1)
            state = (state ^ state >> np.uint64(29)) * np.uint64(0xBF58476D1CE4E5B9)
            state = state ^ state >> np.uint64(32)
    return np.asarray(state >> np.uint64(1)).astype(np.int64)


def _hashed(function: Function, arrays: Sequence[Array]) -> Array:
    """A keyed hash in place of a function, which has of it that it keeps zeros, and that arguments may be swapped."""
    given = np.sort(np.stack(arrays), axis=0) if function.commutative else arrays
    return keyed_hash(function.name, *given)


def _keep_zero(function: Function, arrays: Sequence[Array], values: Array) -> Array:
    zeros = np.all([a == 0 for a in arrays], axis=0) if function.zero else False
    return np.where(zeros, 0, values)


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
        return _keep_zero(function, arrays, _hashed(function, arrays) % PRIME)

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
        return _keep_zero(function, arrays, _hashed(function, arrays) % 1021 - 510)

    def largest(self, x: Array, axes: tuple[int, ...], present: Array) -> Array:
        """The maximum of the elements that are present."""
        return np.asarray(np.where(present, x, -(2**40)).max(axis=axes))

    def softmax(self, x: Array, axis: int) -> Array:
        """A keyed hash of an element and of the multiset along the axis."""
        powers = self._hash("exp", x)
        return self._hash("softmax", x, np.broadcast_to(powers.sum(axis=axis, keepdims=True), x.shape))


def _is_repeated(matrices: Array) -> bool:
    """Whether a stack is one matrix, as a view that repeats it is."""
    return all(size == 1 or not step for size, step in zip(matrices.shape[:-2], matrices.strides[:-2], strict=True))


_PART_BYTES = 16 * 2**20
"""Of how many bytes a large matrix is widened at a time."""


class Float(Carrier):
    """64-bit floating point: the meaning of an operator as ONNX has it, up to rounding."""

    name = "float"
    dtype: type[np.generic] = np.float64
    has = frozenset({"div", "order", "root", "exp"})

    def sample(self, shape: Sequence[int], rng: np.random.Generator) -> Array:
        """Standard normal."""
        return rng.standard_normal(tuple(shape))

    def constant(self, value: float) -> Array:
        """The number itself."""
        return np.asarray(value, dtype=np.float64)

    def add(self, x: Array, y: Array) -> Array:
        """Sum."""
        return x + y

    def mul(self, x: Array, y: Array) -> Array:
        """Product."""
        return x * y

    def div(self, x: Array, y: Array) -> Array:
        """Quotient."""
        return x / y

    def matmul(self, x: Array, y: Array) -> Array:
        """Matrix product. Large 32-bit weights are widened in parts: doubled, they might not fit the memory. What is
        one matrix for all in a batch is so here: widened for each, it surely would not.
        """
        if y.ndim > 2 and x.size and x.shape[:-2] == y.shape[:-2] and _is_repeated(y):
            rows = self.matmul(x.reshape(-1, x.shape[-1]), y[(0,) * (y.ndim - 2)])
            return rows.reshape(*x.shape[:-1], y.shape[-1])
        if y.ndim != 2 or y.dtype == x.dtype or y.nbytes < _PART_BYTES:
            return np.asarray(np.matmul(x, y))
        step = max(_PART_BYTES // (y.itemsize * y.shape[0]), 1)
        result = np.empty((*x.shape[:-1], y.shape[1]), x.dtype)
        widened = np.empty_like(y[:, :step], dtype=x.dtype)  # one for all parts: new memory costs more than a product
        for i in range(0, y.shape[1], step):
            part = widened[:, : y.shape[1] - i]
            part[...] = y[:, i : i + step]
            np.matmul(x, part, out=result[..., i : i + step])
        return result

    def total(self, x: Array, axes: tuple[int, ...]) -> Array:
        """Sum."""
        return np.asarray(x.sum(axis=axes))

    def apply(self, function: Function, *arrays: Array) -> Array:
        """The function itself."""
        return np.asarray(function.real(*arrays))

    def largest(self, x: Array, axes: tuple[int, ...], present: Array) -> Array:
        """The maximum of the elements that are present."""
        return np.asarray(np.where(present, x, -np.inf).max(axis=axes))

    def softmax(self, x: Array, axis: int) -> Array:
        """Shifted by the maximum, so that no exponential overflows."""
        powers = np.exp(x - x.max(axis=axis, keepdims=True))
        return np.asarray(powers / powers.sum(axis=axis, keepdims=True))


class Single(Float):
    """32-bit floating point, as most models compute in."""

    name = "single"
    dtype = np.float32

    def constant(self, value: float) -> Array:
        """The number, rounded."""
        return np.asarray(value, dtype=np.float32)


FIELD, ORDER, FLOAT, SINGLE = Field(), Order(), Float(), Single()
PARTIAL = PartialField()
EXACT: tuple[Carrier, ...] = (FIELD, ORDER)
