"""What random terms are made of: variables with data, and terms that are there already, by shape and type."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from superopt.arithmetic.carrier import Array
from superopt.dim import Shape
from superopt.onnx_io import random_weights
from superopt.operators.activations import plus
from superopt.operators.constant import filled
from superopt.operators.layout import Expand
from superopt.operators.pointwise import Mul
from superopt.term import REAL, Graph, Term, make, variable

FLOATS, TRUTH, WHOLE = ("float32", "float64"), "bool", "int64"
NUMBERS = (0.125, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
LARGEST_RANK = 5
COPIES = 4
"""How many noisy copies of a value there are."""


class Values:
    """The terms of one graph while it is drawn: each with its value in 64 bits, and noisy copies of that."""

    def __init__(self, seed: int) -> None:
        self.seed, self.rng = seed, np.random.default_rng(seed)
        self.wild = self.rng.random() < 0.03  # outside of domains, and as large as it gets
        self.main = FLOATS[int(self.rng.random() < 0.3)]
        self.leaves: list[Term] = []
        self.feed: dict[Term, Array] = {}
        self.copies: dict[Term, list[Array]] = {}
        self.made: list[Term] = []

    def integer(self, least: int, most: int) -> int:
        """From least to most, both included."""
        return int(self.rng.integers(least, most + 1))

    def several(self, count: int, least: int, most: int) -> tuple[int, ...]:
        """So many of them, mostly the least."""
        return tuple(self.integer(least, most) if self.rng.random() < 0.4 else least for _ in range(count))

    def floating(self) -> str:
        """An element type: mostly that of the graph, else one that a cast made."""
        other = [t.type.dtype for t in self.made if t.type.dtype in FLOATS and t.type.dtype != self.main]
        return other[0] if other and self.rng.random() < 0.4 else self.main

    def any(self, least: int = 0, most: int = LARGEST_RANK, dtype: str = "") -> Term:
        """A value of some shape: one that is there, or a new variable."""
        dtype = dtype or self.floating()
        fits = [t for t in self.copies if _is_of(t, dtype) and least <= t.type.rank <= most]
        if fits and self.rng.random() < 0.75:
            late = len(fits) - 1 - min(int(self.rng.geometric(0.3)) - 1, len(fits) - 1)
            return fits[late if self.rng.random() < 0.5 else self.integer(0, len(fits) - 1)]
        return self.leaf(tuple(self.integer(1, 5) for _ in range(self.integer(least, most))), dtype)

    def like(self, shape: Shape, dtype: str, spread: bool = True) -> Term:
        """A value of this shape: one that is there, one that is repeated, or a new variable."""
        dtype = self.main if dtype == REAL else dtype
        fits = [t for t in self.copies if _is_of(t, dtype) and t.shape == shape]
        how = self.rng.random()
        if fits and how < 0.5:
            return fits[self.integer(0, len(fits) - 1)]
        if shape and spread and how < 0.75:
            axes = tuple(a for a in range(len(shape)) if self.rng.random() < 0.4)
            return make(Expand(axes, shape), (self.like(tuple(shape[a] for a in axes), dtype, spread=False),))
        if dtype in FLOATS and how < 0.8:
            return filled(float(self.rng.choice(NUMBERS)), shape)
        return self.leaf(shape, dtype)

    def leaf(self, shape: Shape, dtype: str) -> Term:
        """A new variable: normal, positive, or of halves, at which comparing and rounding is exact; or a weight."""
        constant = dtype != TRUTH and self.rng.random() < 0.3
        leaf = variable(f"v{len(self.leaves)}", shape, dtype, constant)
        self.leaves.append(leaf)
        if constant:
            value = random_weights(Graph(tuple(self.leaves), ()), self.seed)[leaf]
        else:
            sizes = ints(shape)
            drawn = (
                self.rng.standard_normal(sizes),
                self.rng.uniform(0.25, 2.0, sizes),
                self.rng.integers(-5, 6, sizes) / 2,
            )
            how = 2 if dtype == WHOLE else self.integer(0, 2)
            value = np.asarray(drawn[2] > 0 if dtype == TRUTH else drawn[how]).astype(dtype)
            self.feed[leaf] = value
        self.copies[leaf] = [value.astype(np.float64)] * (COPIES + 1)
        return leaf

    def indices(self, shape: Shape, size: int) -> Term:
        """A new variable of indices into an axis of some size, from its start or its end."""
        leaf = variable(f"v{len(self.leaves)}", shape, WHOLE)
        self.leaves.append(leaf)
        value = self.rng.integers(-size, size, ints(shape))
        self.feed[leaf] = np.asarray(value, np.int64)
        self.copies[leaf] = [self.feed[leaf].astype(np.float64)] * (COPIES + 1)
        return leaf

    def positive(self, x: Term) -> Term:
        """`x` where it is positive and not small, else of its square."""
        if self.wild or (x in self.copies and (self.copies[x][0] > 0.2).all()):
            return x
        return plus(Mul()(x, x), 0.5)


def _is_of(term: Term, dtype: str) -> bool:
    return term.type.dtype == dtype or (term.type.dtype == REAL and dtype in FLOATS)


def ints(values: Iterable[Any]) -> tuple[int, ...]:
    """Sizes, or what numpy drew, as plain numbers."""
    return tuple(int(v) for v in values)
