"""The sizes at which both sides of a law are well formed: all small ones, or a sample of them."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from superopt.arithmetic.carrier import Array
from superopt.dim import Condition, Dim, Floor, Symbol, symbol
from superopt.errors import ShapeError
from superopt.operators.laws.collected import Law
from superopt.operators.solved_sizes import fitting
from superopt.operators.symbolic import all_symbols
from superopt.term import size_symbols

LARGEST = 4
"""The largest size tried, where nothing else determines it."""

LIMIT = 2000
"""Up to how many shapes an instance of a law is tried on all that it fits; where more fit, on a sample of a quarter."""

CANDIDATES = 2**19
"""Up to how many combinations of sizes are looked through; of more, sizes are drawn."""


@dataclass(frozen=True)
class Sizes:
    """Values of a law's symbols at which both sides are well formed and its conditions hold, the smallest first."""

    names: tuple[str, ...]
    rows: NDArray[np.int64]
    complete: bool
    """Whether these are all of them, up to `LARGEST`."""


def small_sizes(law: Law, limit: int = LIMIT, seed: int = 0) -> Sizes:
    """The sizes that a law fits, or where these are more than `limit`, a quarter as many drawn from them.

    Those of tensors run from 1 to `LARGEST`, those of attributes from 0; one that the others determine (the width of a
    reshape to one axis) is as large as they make it.
    """
    roots = (law.left, law.right)
    dims = size_symbols(*roots)
    names = sorted(all_symbols(*roots), key=lambda n: n not in dims)  # what is solved for is rather an attribute
    try:
        fixed, rest = fitting(roots, law.conditions, names)
    except ShapeError:
        return Sizes(tuple(names), np.zeros((0, len(names)), np.int64), True)
    lowest = {n: int(n in dims) for n in names if n not in fixed}
    whole = prod(LARGEST + 1 - low for low in lowest.values()) <= CANDIDATES
    rng = generator(seed, str(law))
    found = np.zeros((0, len(names)), np.int64)
    for candidates in [_grid(lowest)] if whole else _draws(lowest, rng):
        known = Columns(candidates)
        fits = np.logical_and.reduce([known.holds(c) for c in rest] + [known.defined])
        table = known.table([fixed.get(n, symbol(n)) for n in names])
        found = np.unique(np.concatenate([found, table[fits]]), axis=0)
        if len(found) >= limit:
            break
    complete = whole and len(found) <= limit
    if not complete:
        most = min(len(found), max(limit // 4, 1))
        found = found[rng.choice(len(found), most, replace=False)]
    order = sorted(range(len(found)), key=lambda i: (int(found[i].sum()), tuple(found[i])))
    return Sizes(tuple(names), found[order], complete)


def _grid(lowest: Mapping[str, int]) -> dict[str, Array]:
    """Every combination of sizes up to `LARGEST`, a column for each name; one empty combination of none."""
    lengths = [LARGEST + 1 - low for low in lowest.values()]
    places = np.indices(lengths).reshape(len(lengths), prod(lengths))
    return {n: column + low for (n, low), column in zip(lowest.items(), places, strict=True)}


def _draws(lowest: Mapping[str, int], rng: np.random.Generator, batches: int = 16) -> Iterator[dict[str, Array]]:
    """Combinations drawn at random; small sizes meet conditions more often, so some of what is drawn is 0 or 1."""
    for _ in range(batches):
        count = CANDIDATES // 8
        usual = {n: rng.integers(low, LARGEST + 1, count) for n, low in lowest.items()}
        yield {n: np.where(rng.random(count) < 0.7, c, rng.integers(lowest[n], 2, count)) for n, c in usual.items()}


class Columns:
    """Sizes at many values of their symbols at once: a column for each symbol."""

    def __init__(self, known: Mapping[str, Array]) -> None:
        self.known = known
        self.count = len(next(iter(known.values()), np.zeros(1)))
        self.defined: Array = np.ones(self.count, bool)
        """Where no size that was asked for is divided by less than 1."""

    def of(self, dim: Dim) -> Array:
        """The values of a size."""
        if isinstance(dim, int):
            return np.full(self.count, dim)
        total = np.zeros(self.count, np.int64)
        for monomial, coefficient in dim.terms:
            part = np.full(self.count, coefficient)
            for atom in monomial:
                part = part * (self.known[atom.name] if isinstance(atom, Symbol) else self._floor(atom))
            total += part
        return total

    def _floor(self, atom: Floor) -> Array:
        bottom = self.of(atom.denominator)
        self.defined &= bottom >= 1
        return np.asarray(self.of(atom.numerator) // np.maximum(bottom, 1))

    def table(self, dims: Sequence[Dim]) -> Array:
        """A column for each of the sizes."""
        return np.stack([self.of(d) for d in dims], axis=1) if dims else np.zeros((self.count, 0), np.int64)

    def holds(self, condition: Condition) -> Array:
        """Where a condition holds."""
        left, right = self.of(condition.left), self.of(condition.right)
        match condition.relation:
            case "=":
                truth = left == right
            case "<=":
                truth = left <= right
            case "!=":
                truth = left != right
            case "divides":  # only 0 is a multiple of 0
                truth = np.where(left == 0, right == 0, right % np.where(left == 0, 1, left) == 0)
        return np.asarray(truth)


def generator(seed: int, *of: str) -> np.random.Generator:
    """Random numbers that depend on a seed and on what they are for, and on nothing else."""
    return np.random.default_rng([seed, *(zlib.crc32(text.encode()) for text in of)])
