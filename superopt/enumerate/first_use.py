"""In which order terms use their variables first: of all renamings of a term, one uses them in order.

Variables of one type are interchangeable. A term is *canonical* where it uses the variables of each type in the order
in which the family gives them; every term is a renaming of one that is.
"""

from __future__ import annotations

import numpy as np

from superopt.arithmetic.carrier import Array


class FirstUse:
    """Orders of first use, by number. Combining numbers is combining orders: those of the first, then what is new."""

    nothing = 0

    def __init__(self) -> None:
        self.orders: list[tuple[int, ...]] = [()]
        self._numbers: dict[tuple[int, ...], int] = {(): 0}
        self._combined: dict[tuple[int, int], int] = {}
        self._place: list[int] = []
        """For each variable, its place among those of its type."""
        self._type: list[int] = []

    def variable(self, type_: int) -> int:
        """The order of a further variable of a type, used alone."""
        self._place.append(self._type.count(type_))
        self._type.append(type_)
        return self._number((len(self._place) - 1,))

    def combined(self, left: Array, right: Array) -> Array:
        """The orders of operators over two terms each."""
        pairs, inverse = np.unique(left.astype(np.int64) << 32 | right.astype(np.int64), return_inverse=True)
        numbers = [self._combine(int(p >> 32), int(p & 0xFFFFFFFF)) for p in pairs]
        return np.array(numbers, np.int32)[inverse]

    def canonical(self, orders: Array) -> Array:
        """Which orders are those of canonical terms."""
        kinds, inverse = np.unique(orders, return_inverse=True)
        return np.array([self._is_canonical(self.orders[k]) for k in kinds], bool)[inverse]

    def count(self, orders: Array) -> Array:
        """How many variables are used."""
        return np.array([len(o) for o in self.orders], np.int32)[orders]

    def in_order(self, order: int, leaves: int) -> tuple[int, ...]:
        """The renaming by which what uses its variables in an order becomes canonical, for each leaf."""
        used = self.orders[order]
        new: dict[int, int] = {}
        for type_ in set(self._type):
            same = [v for v in range(len(self._type)) if self._type[v] == type_]
            now = [v for v in used if self._type[v] == type_]
            new |= dict(zip([*now, *(v for v in same if v not in now)], same, strict=True))
        return tuple(new.get(v, v) for v in range(leaves))

    def _number(self, order: tuple[int, ...]) -> int:
        known = self._numbers.setdefault(order, len(self.orders))
        if known == len(self.orders):
            self.orders.append(order)
        return known

    def _combine(self, left: int, right: int) -> int:
        if (left, right) not in self._combined:
            first = self.orders[left]
            self._combined[left, right] = self._number(first + tuple(v for v in self.orders[right] if v not in first))
        return self._combined[left, right]

    def _is_canonical(self, order: tuple[int, ...]) -> bool:
        next_: dict[int, int] = {}
        for v in order:
            if self._place[v] != next_.setdefault(self._type[v], 0):
                return False
            next_[self._type[v]] += 1
        return True
