"""Floating point of 64 and 32 bits: the meaning of an operator as ONNX has it, up to rounding."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from superopt.arithmetic.carrier import Array, Carrier, Function


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


FLOAT = Float()
SINGLE = Single()
