"""How generally an equation that was found may be stated: which of its sizes become symbols, and which stay."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from superopt.dim import Dim
from superopt.operators.declare import Declared
from superopt.term import Term, subterms

Place: TypeAlias = tuple[str, int]
"""A kind of operator, and which of its attributes."""

Kept: TypeAlias = Literal["all", "nonzero", "changed", "set", "rings", "shared", "channels", "none"]


@dataclass(frozen=True)
class Generality:
    """What of the sizes found becomes a symbol: attributes (all, those that are not 0, those that are not what they are
    by default, those that are neither, of these those that all operators of a kind have on both sides, or those that
    are as many as channels, as groups of one channel each; none), and axes of size 1. With `cuts`, slices are cut where
    concats below them were joined. With `alike`, attributes of one name and value are one symbol whatever has them, as
    windows move alike in pools and convolutions.

    Of "rings" are what is not as it is by default, and the pads of windows, 0 or not: kernels with zeros around go with
    more of them. As many before an axis as after it are one symbol, since sizes know no more than their sum.
    """

    attributes: Kept
    ones: bool
    cuts: bool = False
    alike: bool = False

    def names(self, op: Declared) -> list[str]:
        """What the symbols of an operator's size attributes begin with: the attribute's name, or the operator's."""
        found: list[str] = []
        for f in (f for f in op.fields if f.facts.size):
            value = getattr(op, f.name)
            many = value if isinstance(value, tuple) else (value,)
            first, half = 0 if self.alike else len(found), len(many) // 2
            ringed = self.attributes == "rings" and f.name == "pads"
            for i, d in enumerate(many):
                place = i - half if ringed and i >= half and many[i - half] == d else i
                found.append(f"{f.name if self.alike else op.name}_{first + place}")
        return found

    def staying(self, term: Term, shared: Container[Place]) -> Iterator[bool]:
        """Of each size attribute of a term's operator, whether it stays the number that it is."""
        op = term.operator
        assert isinstance(op, Declared)
        channels = [i.shape[1] for i in term.inputs[:1] if i.type.rank > 1 and i.shape[1] != 1]
        for place, (value, default) in enumerate(zip(op.sizes(), op.default_sizes(), strict=True)):
            is_usual = bool(value == 0 or value == default)
            yield {
                "all": False,
                "nonzero": bool(value == 0),
                "changed": bool(value == default),
                "set": is_usual,
                "rings": is_usual and bool(default != 0),
                "shared": is_usual or (op.name, place) not in shared,
                "channels": is_usual or value not in channels,
                "none": True,
            }[self.attributes]


CONSTANTS = Generality("changed", ones=True)
"""Of operators that make a constant: it may be of any size."""

LADDER = (
    Generality("all", ones=True),
    Generality("all", ones=True, cuts=True),
    Generality("nonzero", ones=True, cuts=True),
    Generality("changed", ones=True, cuts=True),
    Generality("set", ones=True, cuts=True),
    Generality("rings", ones=True),
    Generality("shared", ones=True),
    Generality("none", ones=True),
    Generality("all", ones=False),
    Generality("nonzero", ones=False, cuts=True),
    Generality("changed", ones=False, cuts=True),
    Generality("set", ones=False, cuts=True),
    Generality("rings", ones=False),
    Generality("changed", ones=False, alike=True),
    Generality("channels", ones=False),
    Generality("none", ones=False),
)
"""From the most general to the least."""


def shared_places(roots: tuple[Term, ...]) -> frozenset[Place]:
    """Where all operators of a kind have one value, and each side has such operators."""
    values: dict[Place, set[Dim]] = defaultdict(set)
    sides: dict[Place, set[Term]] = defaultdict(set)
    for root in roots:
        for op in (t.operator for t in subterms(root)):
            for i, value in enumerate(op.sizes() if isinstance(op, Declared) else ()):
                values[op.name, i].add(value)
                sides[op.name, i].add(root)
    return frozenset(p for p, found in values.items() if len(found) == 1 and len(sides[p]) == len(roots))
