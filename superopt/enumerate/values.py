"""The values of an enumeration's terms, in every carrier at several sizes and inputs, and fingerprints of them.

A fingerprint is 64 bits of a random sum over the elements of all values in a carrier, of which there are some for
each of two choices of sizes, with inputs of their own. Different terms of degree d share theirs in the field with a
probability of about (d/p)² + 2⁻⁶⁴ a pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from superopt.arithmetic.carrier import Array, Carrier
from superopt.arithmetic.order import ORDER
from superopt.enumerate.columns import Evaluation, evaluation, numel
from superopt.enumerate.family import SIZES
from superopt.enumerate.types import Types
from superopt.evaluate import evaluate
from superopt.operators.symbolic import resize
from superopt.term import Term

EVALUATED_AT = SIZES - 1
"""At how many of a family's choices of sizes terms are evaluated."""

INPUTS = {"field": 1, "order": 4}
"""How many inputs a carrier takes at each choice of sizes: of ordered integers some may be all above others."""

AT_ONCE = 2**13
"""Of how many terms fingerprints are summed at once: so many sums stay in the caches."""


@dataclass(frozen=True)
class Inputs:
    """What terms are evaluated on: a choice of sizes and a carrier, which is the `line`-th of the family's."""

    line: int
    choice: int
    ring: Carrier


class Values:
    """Columns of values by type and number of the inputs. A term's value is at its `row` of its type."""

    def __init__(self, types: Types, seed: int) -> None:
        self.types, self.seed = types, seed
        self.carriers = types.family.carriers()
        self.inputs = [
            Inputs(line, choice, ring)
            for line, ring in enumerate(self.carriers)
            for choice in range(EVALUATED_AT)
            for _ in range(INPUTS[ring.name])
        ]
        self._columns: dict[tuple[int, int], Array] = {}
        self._new: dict[tuple[int, int], list[Array]] = {}
        self._count: dict[int, int] = {}
        self._single: dict[int, int] = {}
        self._evaluations: dict[tuple[int, int], Evaluation] = {}
        self._drawn: dict[tuple[int, int], Array] = {}

    def of_leaf(self, leaf: Term, number: int) -> list[Array]:
        """The value of a constant, or random ones of a variable, whose `number` makes them its own."""
        found = []
        for n, on in enumerate(self.inputs):
            (sized,) = resize((leaf,), self.types.family.numbers(on.choice))
            rng = np.random.default_rng((self.seed, number, n))
            shape = [int(d) for d in sized.shape]  # type: ignore[arg-type]
            value = on.ring.sample(shape, rng) if leaf.is_variable else evaluate(sized, on.ring, {})
            if leaf.is_variable and value.size == 1 and on.ring is ORDER:
                value = abs(value) * self._sign(number, n)
            found.append(value.reshape(numel(sized), 1))
        return found

    def _sign(self, number: int, n: int) -> int:
        """The sign of a single number: below zero as often as above, and so are products of up to three of them."""
        place = self._single.setdefault(number, len(self._single) + 1)
        first = next(i for i, on in enumerate(self.inputs) if on.ring is ORDER)
        return -1 if (n - first & place).bit_count() % 2 else 1

    def of(self, app: int, rows: Sequence[Array], only: Sequence[int] | None = None) -> list[Array]:
        """The values of an application to terms, given as rows of their types: for all inputs, or `only` some."""
        a = self.types.applications[app]
        found = []
        for n in range(len(self.inputs)) if only is None else only:
            on = self.inputs[n]
            if (app, n) not in self._evaluations:
                sizes = self.types.family.numbers(on.choice)
                self._evaluations[app, n] = evaluation(a.term, a.holes, sizes, on.ring)
            columns = [self._columns[t, n][:, r].astype(np.int64) for t, r in zip(a.inputs, rows, strict=True)]
            found.append(self._evaluations[app, n](*columns))
        return found

    def width(self, app: int) -> int:
        """How many numbers the widest step of an application needs for a value."""
        self.of(app, [np.empty(0, np.int32)] * len(self.types.applications[app].inputs))
        return max(self._evaluations[app, n].width for n in range(len(self.inputs)))

    def prints(self, type_: int, values: Sequence[Array]) -> Array:
        """The fingerprints of columns for all inputs, a row for each carrier."""
        rows = np.full((len(self.carriers), values[0].shape[1]), type_ * 0x9E3779B97F4A7C15 % 2**64, np.uint64)
        for n, (on, v) in enumerate(zip(self.inputs, values, strict=True)):
            rows[on.line] += self._sums(n, v)
        return rows

    def quick_prints(self, app: int, rows: Sequence[Array]) -> Array:
        """Fingerprints by as few inputs as tell most values apart, a row for each carrier: one of the field's, all of
        ordered integers, of which one input may be all above zero.
        """
        some = [n for n, on in enumerate(self.inputs) if on.ring is ORDER or n == 0]
        found = np.zeros((len(self.carriers), len(rows[0])), np.uint64)
        for n, values in zip(some, self.of(app, rows, some), strict=True):
            found[self.inputs[n].line] += self._sums(n, values)
        return found

    def _sums(self, n: int, values: Array) -> Array:
        weights = self._weights(n, len(values))
        total = np.zeros(values.shape[1], np.uint64)
        with np.errstate(over="ignore"):  # sums of 64 bits are meant to wrap
            for start in range(0, len(total), AT_ONCE):
                some = slice(start, start + AT_ONCE)
                for weight, row in zip(weights, values, strict=True):
                    total[some] += weight * row[some].view(np.uint64)
        return total

    def _weights(self, n: int, count: int) -> Array:
        """Odd numbers of 64 bits, of an input's own."""
        if (n, count) not in self._drawn:
            rng = np.random.default_rng((self.seed, n, count))
            self._drawn[n, count] = rng.integers(0, 2**64, count, dtype=np.uint64) | np.uint64(1)
        return self._drawn[n, count]

    def enter(self, type_: int, values: Sequence[Array]) -> Array:
        """Keep columns of a type: the rows they will have once all is settled."""
        count, start = values[0].shape[1], self._count.get(type_, 0)
        for n, v in enumerate(values):
            self._new.setdefault((type_, n), []).append(v)
        self._count[type_] = start + count
        return np.arange(start, start + count, dtype=np.int32)

    def settle(self) -> None:
        """Add what was entered, all at once."""
        for key, parts in self._new.items():
            known = [self._columns[key]] if key in self._columns else []
            self._columns[key] = np.concatenate([*known, _compact(np.concatenate(parts, axis=1))], axis=1)
        self._new = {}


def _compact(values: Array) -> Array:
    """Integers in as few bits as hold them."""
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    kinds = (np.int16, np.int32, np.uint32, np.int64)
    return values.astype(next(k for k in kinds if np.iinfo(k).min <= low and high <= np.iinfo(k).max))
