"""All terms of a family in columns: what each applies to which, the operators under it, its value at several sizes.

A term is a number: variables and constants come first, then terms by level. Only the first term of each value is kept,
for larger ones to be made of; what equal values were met is remembered by what was applied to what. Fingerprints are 64
bits of a random sum over a value's elements, at two choices of sizes with inputs of their own. Different values of
degree d in the field share theirs with a probability of about (d/p)² + 2⁻⁶⁴ a pair.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np

from superopt.arithmetic import ORDER, Array, Carrier
from superopt.dim import Shape, assuming
from superopt.enumerate.columns import Evaluation, evaluation, numel
from superopt.enumerate.family import SIZES, Family, Pattern
from superopt.evaluate import evaluate
from superopt.enumerate.first_use import FirstUse
from superopt.operators.declare import Declared
from superopt.operators.instances import resize
from superopt.term import Term, replace, variable

COLUMNS = ("app", "left", "right", "level", "type", "row", "uses")

INPUTS = {"field": 1, "order": 4}
"""How many inputs a carrier takes at each choice of sizes: of ordered integers some may be all above others."""

EVALUATED_AT = SIZES - 1
"""At how many of a family's choices of sizes terms are evaluated."""


@dataclass(frozen=True)
class Inputs:
    """Inputs that terms are evaluated on: sizes, a carrier, and the fingerprint that values go into.

    Where they are `alike`, variables of one type are equal, so that renamings of a term are: a fingerprint of its own.
    """

    line: int
    choice: int
    ring: Carrier
    alike: bool = False


@dataclass(frozen=True)
class Application:
    """A pattern applied to terms of given types: the term it makes over its holes, and the type of that."""

    pattern: Pattern
    term: Term
    kind: int
    inputs: tuple[int, ...]
    result: int


@dataclass(frozen=True)
class Kind:
    """A pattern's term, whatever the types of its inputs."""

    pattern: Pattern
    place: int
    """Which of the terms it is that the pattern makes."""
    commutative: bool


Renaming = tuple[int, ...]
"""For each leaf of a table the leaf that takes its place."""


class Columns(Protocol):
    """Applications to terms, column by column; `right` is −1 for operators of one input."""

    app: Array
    left: Array
    right: Array


@dataclass
class Found:
    """Applications met: which, to which terms, and the fingerprints of their values, a row for each carrier."""

    app: Array
    left: Array
    right: Array
    prints: Array

    def __len__(self) -> int:
        return len(self.app)


@dataclass
class Table:
    """See above. Columns are arrays over terms; `right` is −1 for operators of one input, `app` −1 for leaves."""

    family: Family
    seed: int
    most: int
    """How many operators a term may have."""
    leaves: list[Term] = field(default_factory=list)
    types: list[Shape] = field(default_factory=list)
    applications: list[Application] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.carriers: tuple[Carrier, ...] = self.family.carriers()
        self.app, self.left, self.right = (np.empty(0, np.int32) for _ in range(3))
        self.level, self.type, self.row, self.uses = (np.empty(0, np.int32) for _ in range(4))
        self.under = np.empty((0, self.most), np.int32)
        self.values: dict[tuple[int, int], Array] = {}
        self.kinds: list[Kind] = []
        self._kinds: dict[Kind, int] = {}
        self.kind_of_app = np.empty(0, np.int32)
        self.commutative = np.empty(0, bool)
        self.kind = np.empty(0, np.int32)
        self._renamed: dict[Renaming, Array] = {}
        self.first_use = FirstUse()
        self._prints: list[tuple[Array, Array]] = [(np.empty(0, np.uint64), np.empty(0, np.int32))] * len(self.carriers)
        self._met: tuple[Array, Array] = (np.empty(0, np.uint64), np.empty(0, np.int32))
        self._types: dict[Shape, int] = {}
        self._apps: dict[tuple[Pattern, tuple[int, ...]], list[int]] = {}
        self._evaluations: dict[tuple[int, int], Evaluation] = {}
        self._new: list[Array] = []
        self._new_under: list[Array] = []
        self._new_prints: list[Array] = []
        self._new_values: dict[tuple[int, int], list[Array]] = {}
        self._count = 0
        self._enter_leaves()

    def __len__(self) -> int:
        return len(self.app)

    # ------------------------------------------------------------------------------------------------------ types

    def type_of(self, shape: Shape) -> int:
        """The number of a type."""
        known = self._types.setdefault(shape, len(self.types))
        if known == len(self.types):
            self.types.append(shape)
        return known

    def applied(self, pattern: Pattern, inputs: tuple[int, ...]) -> list[int]:
        """The numbers of a pattern's applications to terms of these types: none where it does not fit."""
        key = (pattern, inputs)
        if key not in self._apps:
            terms, noted = pattern.over([self.types[i] for i in inputs])
            self._apps[key] = []
            for place, term in enumerate(terms if self.family.fits(noted) else ()):
                self._apps[key].append(len(self.applications))
                kind = self._kind(pattern, place, term)
                self.applications.append(Application(pattern, term, kind, inputs, self.type_of(term.shape)))
                self.kind_of_app = np.append(self.kind_of_app, np.int32(kind))
                self.commutative = np.append(self.commutative, self.kinds[kind].commutative)
        return self._apps[key]

    def _kind(self, pattern: Pattern, place: int, term: Term) -> int:
        op = term.operator
        commutes = isinstance(op, Declared) and op.commutative and all(i.is_variable for i in term.inputs)
        kind = Kind(pattern, place, commutes and len(pattern.holes) == 2)
        if kind not in self._kinds:
            self._kinds[kind] = len(self.kinds)
            self.kinds.append(kind)
        return self._kinds[kind]

    def fitting(self, kind: int, left: Array, right: Array) -> Array:
        """The applications of a kind to terms, row by row; −1 where there is none."""
        types = [self.type[left], self.type[right]] if len(self.kinds[kind].pattern.holes) == 2 else [self.type[left]]
        found = np.full(len(left), -1, np.int32)
        code = np.zeros(len(left), np.int64)
        for t in types:
            code = code << 16 | t
        for value in np.unique(code):
            rows = code == value
            first = int(np.argmax(rows))
            apps = self.applied(self.kinds[kind].pattern, tuple(int(t[first]) for t in types))
            found[rows] = next((a for a in apps if self.applications[a].kind == kind), -1)
        return found

    # ------------------------------------------------------------------------------------------------------ values

    @cached_property
    def sets(self) -> list[Inputs]:
        """What each term is evaluated on."""
        found = []
        for line, ring in enumerate(self.carriers):
            for choice in range(EVALUATED_AT):
                found += [Inputs(line, choice, ring)] * INPUTS[ring.name]
        return found + [Inputs(len(self.carriers) + i, 0, ring, alike=True) for i, ring in enumerate(self.carriers)]

    @property
    def lines(self) -> int:
        """How many fingerprints a value has; those of the carriers come first."""
        return 2 * len(self.carriers)

    def evaluated(self, app: int, left: Array, right: Array, on_sets: Sequence[int] | None = None) -> list[Array]:
        """The columns of an application's values over terms, one array for each of `sets` (or of those chosen)."""
        a = self.applications[app]
        found = []
        for number in range(len(self.sets)) if on_sets is None else on_sets:
            on = self.sets[number]
            if (app, number) not in self._evaluations:
                sizes = self.family.numbers(on.choice)
                self._evaluations[app, number] = evaluation(a.term, a.pattern.holes, sizes, on.ring)
            terms = (left, right)[: len(a.inputs)]
            columns = [
                self.values[t, number][:, self.row[ids]].astype(np.int64) for t, ids in zip(a.inputs, terms, strict=True)
            ]
            found.append(self._evaluations[app, number](*columns))
        return found

    def width(self, app: int) -> int:
        """How many numbers the widest step of an application needs for a value."""
        none = np.empty(0, np.int32)
        self.evaluated(app, none, none)
        return max(self._evaluations[app, number].width for number in range(len(self.sets)))

    def first_prints(self, app: int, left: Array, right: Array, line: int) -> Array:
        """Fingerprints by the first inputs of a carrier alone."""
        number = next(i for i, on in enumerate(self.sets) if on.line == line)
        (values,) = self.evaluated(app, left, right, [number])
        return self._print(number, values)

    def prints_of(self, type_: int, values: Sequence[Array]) -> Array:
        """The fingerprints of columns, a row for each of `lines`."""
        rows = np.full((self.lines, values[0].shape[1]), type_ * 0x9E3779B97F4A7C15 % 2**64, np.uint64)
        for number, (on, v) in enumerate(zip(self.sets, values, strict=True)):
            rows[on.line] += self._print(number, v)
        return rows

    def _print(self, number: int, values: Array) -> Array:
        rng = np.random.default_rng((self.seed, number, values.shape[0]))
        weights = rng.integers(0, 2**64, values.shape[0], dtype=np.uint64) | np.uint64(1)
        total = np.zeros(values.shape[1], np.uint64)
        with np.errstate(over="ignore"):  # sums of 64 bits are meant to wrap
            for weight, row in zip(weights, values, strict=True):
                total += weight * row.view(np.uint64)
        return total

    # ------------------------------------------------------------------------------------------------------ terms

    def _enter_leaves(self) -> None:
        """The variables and constants, in one call for each, with random values for variables."""
        for number, leaf in enumerate([*self.family.given, *self.family.constants]):
            values = []
            for n, on in enumerate(self.sets):
                (sized,) = resize((leaf,), self.family.numbers(on.choice))
                rng = np.random.default_rng((self.seed, 0 if on.alike else number, n))
                shape = [int(d) for d in sized.shape]  # type: ignore[arg-type]
                value = on.ring.sample(shape, rng) if leaf.is_variable else evaluate(sized, on.ring, {})
                if leaf.is_variable and value.size == 1 and on.ring is ORDER and not on.alike:
                    value = abs(value) * self._sign(number, n)
                values.append(value.reshape(numel(sized), 1))
            type_ = self.type_of(leaf.shape)
            self.leaves.append(leaf)
            uses = self.first_use.variable(type_) if leaf.is_variable else self.first_use.nothing
            none, prints = np.array([-1]), self.prints_of(type_, values)
            self.enter(-1, none, none, 0, type_, np.array([uses]), values, prints)
        self.settle()

    def _sign(self, variable: int, number: int) -> int:
        """Signs of single numbers: each is as often below as above zero, and so are products of different ones."""
        return -1 if (number & variable + 1).bit_count() % 2 else 1

    def enter(
        self, app: int, left: Array, right: Array, level: int, type_: int, uses: Array, values: list[Array], prints: Array
    ) -> None:
        """Keep terms of one application and new values; they are there once all is settled."""
        start, count = self._count, len(left)
        ids = np.arange(start, start + count, dtype=np.int32)
        row = sum(v.shape[1] for v in self._new_values.get((type_, 0), ()))
        row += self.values[type_, 0].shape[1] if (type_, 0) in self.values else 0
        for number, v in enumerate(values):
            self._new_values.setdefault((type_, number), []).append(v)
        own = np.full((count, self.most), -1, np.int32)
        if app >= 0:
            own = self.union(left, right)
            if not self.applications[app].pattern.free:
                own[np.arange(count), (own >= 0).sum(axis=1)] = ids
        new = (np.full(count, app), left, right, np.full(count, level), np.full(count, type_), row + np.arange(count), uses)
        self._new.append(np.array(new, np.int32))
        self._new_under.append(own)
        self._new_prints.append(prints)
        self._count += count

    def settle(self) -> None:
        """Add what was entered to the columns, all at once."""
        ids = np.arange(len(self), self._count, dtype=np.int32)
        columns = np.concatenate([np.array([getattr(self, name) for name in COLUMNS], np.int32), *self._new], axis=1)
        for name, column in zip(COLUMNS, columns, strict=True):
            setattr(self, name, column)
        self.kind = np.where(self.app < 0, -1, self.kind_of_app[self.app]) if len(self.kind_of_app) else self.app.copy()
        self.under = np.concatenate([self.under, *self._new_under])
        for key, parts in self._new_values.items():
            known = [self.values[key]] if key in self.values else []
            self.values[key] = np.concatenate([*known, compact(np.concatenate(parts, axis=1))], axis=1)
        prints = np.concatenate([np.empty((self.lines, 0), np.uint64), *self._new_prints], axis=1)
        self._prints = [_merged(old, (new, ids)) for old, new in zip(self._prints, prints, strict=False)]
        self._new, self._new_under, self._new_prints, self._new_values = [], [], [], {}
        kinds = _distinct_rows(self.level, self.type)
        self.members: list[dict[int, Array]] = [{} for _ in range(self.most + 1)]
        for level, type_ in kinds:
            self.members[level][type_] = np.flatnonzero((self.level == level) & (self.type == type_)).astype(np.int32)

    def by_application(self) -> Iterator[tuple[int, Array]]:
        """The terms that are no leaves, in order, in runs of one application."""
        start = len(self.leaves)
        cuts = np.flatnonzero(np.diff(self.app[start:])) + 1 + start
        for first, after in itertools.pairwise([start, *cuts.tolist(), len(self)]):
            if after > first:
                yield int(self.app[first]), np.arange(first, after, dtype=np.int32)

    def union(self, left: Array, right: Array) -> Array:
        """The operators under two terms each, those of the first and then those that only the second has."""
        own = self.under[left].copy()
        if (right < 0).all():
            return own
        other = self.under[right]
        fresh = (other >= 0) & ~(other[:, :, None] == own[:, None, :]).any(axis=2)
        place = (own >= 0).sum(axis=1)
        for k in range(self.most):
            rows = np.flatnonzero(fresh[:, k])
            own[rows, place[rows]] = other[rows, k]
            place[rows] += 1
        return own

    def shared(self, left: Array, right: Array) -> Array:
        """How many operators stand under both of two terms each."""
        a, b = self.under[left], self.under[right]
        return ((a[:, :, None] == b[:, None, :]) & (a[:, :, None] >= 0)).sum(axis=(1, 2))

    def known(self, prints: Array) -> Array:
        """For fingerprints, a row for each carrier, the term of equal value in some carrier, or −1."""
        found = np.full(prints.shape[1], -1, np.int32)
        for c, (keys, ids) in enumerate(self._prints):
            place = np.minimum(np.searchsorted(keys, prints[c]), len(keys) - 1)
            hit = (keys[place] == prints[c]) & (found < 0)
            found[hit] = ids[place[hit]]
        return found

    # ------------------------------------------------------------------------------------------------- what was met

    def remember(self, app: Array, left: Array, right: Array, terms: Array) -> None:
        """That applications have the values of terms."""
        self._met = _merged(self._met, (_keys(app, left, right), terms.astype(np.int32)))

    def find(self, app: Array, left: Array, right: Array) -> Array:
        """The terms that have the values of applications met; −1 for others."""
        swap = self.commutative[app] & (left > right)
        left, right = np.where(swap, right, left), np.where(swap, left, right)
        keys, terms = self._met
        wanted = _keys(app, left, right)
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.where((keys[place] == wanted) & (app >= 0), terms[place], -1)

    def operators(self, rows: Columns) -> Array:
        """How many operators stand under each of some applications, with its own."""
        count = self.level[rows.left].copy()
        two = rows.right >= 0
        count[two] += self.level[rows.right[two]] - self.shared(rows.left[two], rows.right[two])
        return count + ~self._free()[rows.app]

    def _free(self) -> Array:
        return np.array([a.pattern.free for a in self.applications], bool)

    def variables(self, rows: Columns) -> Array:
        """How many variables each of some applications uses."""
        return self.first_use.count(self.uses_of(rows))

    def uses_of(self, rows: Columns, swapped: bool = False) -> Array:
        """The orders in which applications use their variables, if asked the second input's before the first's."""
        uses = self.uses[rows.left].copy()
        two = rows.right >= 0
        both = (uses[two], self.uses[rows.right[two]])
        uses[two] = self.first_use.combined(*(both[::-1] if swapped else both))
        return uses

    def renamed(self, renaming: Renaming) -> Array:
        """For each term the one that has the value of its renaming; −1 where that was not met."""
        if renaming not in self._renamed:
            found = np.full(len(self), -1, np.int32)
            found[: len(renaming)] = renaming
            for app, rows in self.by_application():
                left, right = found[self.left[rows]], self.right[rows]
                two = right >= 0
                right = np.where(two, found[right], -1)
                met = (left >= 0) & (~two | (right >= 0))
                found[rows[met]] = self.find(np.full(int(met.sum()), app), left[met], right[met])
            self._renamed[renaming] = found
        return self._renamed[renaming]

    # ------------------------------------------------------------------------------------------------------ as terms

    def term(self, number: int) -> Term:
        """A term of the table, over symbols."""
        if self.app[number] < 0:
            return self.leaves[number]
        return self.made(int(self.app[number]), int(self.left[number]), int(self.right[number]))

    def made(self, app: int, left: int, right: int) -> Term:
        """An application to terms of the table, as a term over symbols."""
        a = self.applications[app]
        inputs = [self.term(i) for i in (left, right)[: len(a.inputs)]]
        holes = {variable(h, i.shape): i for h, i in zip(a.pattern.holes, inputs, strict=True)}
        return _filled(a.term, holes)


def compact(values: Array) -> Array:
    """Integers in as few bits as hold them."""
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    kinds = (np.int16, np.int32, np.uint32, np.int64)
    return values.astype(next(k for k in kinds if np.iinfo(k).min <= low and high <= np.iinfo(k).max))


def _filled(term: Term, holes: dict[Term, Term]) -> Term:
    with assuming():
        return replace(term, holes)


def _distinct_rows(*columns: Array) -> list[tuple[int, ...]]:
    return [tuple(row) for row in np.unique(np.stack(columns, axis=1), axis=0).tolist()]


def _keys(app: Array, left: Array, right: Array) -> Array:
    parts = [x.astype(np.uint64) for x in (app, left + 1, right + 1)]
    return parts[0] << np.uint64(48) | parts[1] << np.uint64(24) | parts[2]


def _merged(old: tuple[Array, Array], new: tuple[Array, Array]) -> tuple[Array, Array]:
    """Two tables of keys and what they stand for, sorted by key; of equal keys the earlier is found first."""
    keys, terms = (np.concatenate(parts) for parts in zip(old, new, strict=True))
    order = np.argsort(keys, kind="stable")
    return keys[order], terms[order]
