"""How generally an equation that was found may be stated: which of its sizes become symbols, and which stay."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterator
from dataclasses import MISSING, dataclass
from typing import Literal, TypeAlias

from superopt.dim import Dim
from superopt.operators.attributes import Field
from superopt.operators.declared import Declared
from superopt.term import Term, subterms

Place: TypeAlias = tuple[str, int]
"""A kind of operator, and which of its attributes."""

PADS = "pads"
"""What widths before and after axes are called: of windows, which have none by default, and of zeros."""

Kept: TypeAlias = Literal["all", "nonzero", "changed", "set", "rings", "shared", "channels", "none"]


@dataclass(frozen=True)
class Generality:
    """What of the sizes found becomes a symbol: some attributes, and with `ones` axes of size 1. With `cuts`, slices
    are cut where concats below them were joined. With `alike`, attributes of one name and value are one symbol whatever
    has them, as windows move alike in pools and convolutions.

    Attributes are "all"; those that are not 0 ("nonzero"), not as they are by default ("changed"), or neither ("set");
    of the last those that all operators of a kind have on both sides ("shared"), or that are as many as channels, as
    groups of one channel each ("channels"); or "none". "rings" are "set" and the pads of windows, 0 or not, since
    kernels with zeros around go with more of them: where operators differ in them, as many before an axis as after it
    are one symbol, of which sizes tell no more than the sum.
    """

    attributes: Kept
    ones: bool
    cuts: bool = False
    alike: bool = False

    def names(self, op: Declared, shared: Container[Place]) -> list[str]:
        """What the symbols of an operator's size attributes begin with: the attribute's name, or the operator's."""
        found: list[str] = []
        for f in (f for f in op.fields if f.facts.size):
            many = _many(op, f)
            first, half = 0 if self.alike else len(found), len(many) // 2
            for i, d in enumerate(many):
                tied = i >= half and many[i - half] == d and (op.name, first + i) not in shared
                ringed = tied and self.attributes == "rings" and f.name == PADS
                found.append(f"{f.name if self.alike else op.name}_{first + (i - half if ringed else i)}")
        return found

    def staying(self, term: Term, shared: Container[Place]) -> Iterator[bool]:
        """Of each size attribute of a term's operator, whether it stays the number that it is."""
        op = term.operator
        assert isinstance(op, Declared)
        channels = [i.shape[1] for i in term.inputs[:1] if i.type.rank > 1 and i.shape[1] != 1]
        windows = [f.name == PADS and f.default is not MISSING for f in op.fields if f.facts.size for _ in _many(op, f)]
        for place, (value, default) in enumerate(zip(op.sizes(), op.default_sizes(), strict=True)):
            is_usual = bool(value == 0 or value == default)
            yield {
                "all": False,
                "nonzero": bool(value == 0),
                "changed": bool(value == default),
                "set": is_usual,
                "rings": is_usual and not windows[place],
                "shared": is_usual or (op.name, place) not in shared,
                "channels": is_usual or value not in channels,
                "none": True,
            }[self.attributes]


def _many(op: Declared, field: Field) -> tuple[Dim, ...]:
    """The sizes that an attribute is, or has."""
    value = getattr(op, field.name)
    return value if isinstance(value, tuple) else (value,)


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
"""In the order in which they are tried: what proves is stated no less generally."""


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
