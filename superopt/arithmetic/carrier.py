"""What a carrier is: arithmetic over arrays, and the functions that are taken of their elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


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
