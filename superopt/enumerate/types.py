"""The types of an enumeration's terms, and what each operator of its family makes of them.

A type is a shape over symbols, so no two are equal by an accident of numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from superopt.arithmetic.carrier import Array
from superopt.dim import Shape
from superopt.enumerate.family import Family, Pattern
from superopt.operators.declared import Declared
from superopt.term import Term


@dataclass(frozen=True)
class Kind:
    """A term that a family's pattern makes, whatever the types of its inputs; `place` says which of its terms."""

    pattern: Pattern
    place: int
    commutative: bool

    @property
    def arity(self) -> int:
        """How many inputs it takes."""
        return len(self.pattern.holes)


@dataclass(frozen=True)
class Application:
    """A kind at inputs of given types: the term it makes over its holes, and the type of that. All by number."""

    kind: int
    term: Term
    inputs: tuple[int, ...]
    result: int
    holes: tuple[str, ...]
    free: bool
    """Whether it counts as no operator."""


class Types:
    """Types, kinds and applications, each numbered in the order in which it was first asked for."""

    def __init__(self, family: Family) -> None:
        self.family = family
        self.shapes: list[Shape] = []
        self.kinds: list[Kind] = []
        self.applications: list[Application] = []
        self.kind_of = np.empty(0, np.int32)
        """The kind of each application."""
        self.commutes = np.empty(0, bool)
        """Which applications may have their inputs swapped."""
        self.is_free = np.empty(0, bool)
        self._shapes: dict[Shape, int] = {}
        self._kinds: dict[Kind, int] = {}
        self._applied: dict[tuple[Pattern, tuple[int, ...]], list[int]] = {}

    def number(self, shape: Shape) -> int:
        """The number of a type."""
        known = self._shapes.setdefault(shape, len(self.shapes))
        if known == len(self.shapes):
            self.shapes.append(shape)
        return known

    def ranks(self) -> Array:
        """The rank of each type."""
        return np.array([len(shape) for shape in self.shapes], np.int32)

    def applied(self, pattern: Pattern, inputs: tuple[int, ...]) -> list[int]:
        """The applications of a pattern to terms of these types: none where it does not fit."""
        key = (pattern, inputs)
        if key not in self._applied:
            terms = enumerate(pattern.over([self.shapes[i] for i in inputs]))
            fits = [(place, t) for place, t in terms if t is not None and self.family.fits(t)]
            self._applied[key] = [self._enter(pattern, place, term, inputs) for place, term in fits]
        return self._applied[key]

    def _enter(self, pattern: Pattern, place: int, term: Term, inputs: tuple[int, ...]) -> int:
        op = term.operator
        swaps = isinstance(op, Declared) and op.commutative and all(i.is_variable for i in term.inputs)
        kind = Kind(pattern, place, swaps and len(set(inputs)) == 1)
        if self._kinds.setdefault(kind, len(self.kinds)) == len(self.kinds):
            self.kinds.append(kind)
        number = self._kinds[kind]
        self.applications.append(
            Application(number, term, inputs, self.number(term.shape), pattern.holes, pattern.free)
        )
        self.kind_of = np.append(self.kind_of, np.int32(number))
        self.commutes = np.append(self.commutes, kind.commutative)
        self.is_free = np.append(self.is_free, pattern.free)
        return len(self.applications) - 1

    def fitting(self, kind: int, *inputs: Array) -> Array:
        """The applications of a kind to terms of these types, row by row; −1 where there is none."""
        found = np.full(len(inputs[0]), -1, np.int32)
        code = inputs[0].astype(np.int64)
        for types in inputs[1:]:
            code = code << 16 | types
        for value in np.unique(code):
            rows = np.flatnonzero(code == value)
            apps = self.applied(self.kinds[kind].pattern, tuple(int(t[rows[0]]) for t in inputs))
            found[rows] = next((a for a in apps if self.applications[a].kind == kind), -1)
        return found
