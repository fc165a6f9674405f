"""How the coefficients of one form are to those of another that is the same but for these.

Forms share what they are made of, so a network's is written out far longer than it is: each part is looked at once.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TypeAlias, TypeVar

from superopt.operators.declared import Declared
from superopt.search.rewriting.forms import Forms
from superopt.search.rewriting.sums import Atom, Factors, Poly

Place: TypeAlias = "tuple[Poly, Factors]"
"""A coefficient: the sum that it is in, and the product that it is before."""

_T = TypeVar("_T")


def ratios(forms: Forms, ours: Poly, theirs: Poly) -> dict[Place, float] | None:
    """The logarithms of how their coefficients are to ours, by place in ours; where none is told, they are equal.

    None where the forms differ in more than coefficients, or in a sign.
    """
    found = _Ratios(forms)
    if found.skeleton(ours) != found.skeleton(theirs):
        return None
    found.meet(ours, theirs)
    if any(a * b <= 0 for a, b in found.met.values()):
        return None
    return {place: math.log(b / a) for place, (a, b) in found.met.items()}


class _Ratios:
    def __init__(self, forms: Forms) -> None:
        self._forms = forms
        self._skeletons: dict[object, int] = {}
        self._of_atom: dict[int, int] = {}
        self._seen = set[tuple[Poly, Poly]]()
        self.met: dict[Place, tuple[float, float]] = {}

    def skeleton(self, poly: Poly) -> int:
        """What is left of a sum without coefficients, as a number; equal ones pair, whatever the order."""
        return self._number(tuple(sorted(self._of_product(factors) for factors, _ in poly)))

    def _of_product(self, factors: Factors) -> int:
        return self._number(("product", *sorted((self._atom(a), e) for a, e in factors)))

    def _atom(self, number: int) -> int:
        if number not in self._of_atom:
            atom = self._forms.atoms[number]
            below = [self.skeleton(poly) for poly in atom.inputs]
            if atom.head is not None and not isinstance(atom.head, Declared):
                key: object = atom
            elif atom.head is None:
                key = ("sum", *below)
            else:
                below = sorted(below) if _commutes(atom) else below
                key = (type(atom.head), atom.head.structure(), atom.view, *below)
            self._of_atom[number] = self._number(key)
        return self._of_atom[number]

    def _number(self, key: object) -> int:
        return self._skeletons.setdefault(key, len(self._skeletons))

    def meet(self, ours: Poly, theirs: Poly) -> None:
        """Tell coefficients of sums of one skeleton, and of all that is in them."""
        if ours == theirs or (ours, theirs) in self._seen:
            return
        self._seen.add((ours, theirs))
        (one, other) = ([(self._of_product(p[0]), p) for p in side] for side in (ours, theirs))
        for (factors, number), (given, its) in _paired(one, other):
            self.met[ours, factors] = number, its
            atoms = ([((self._atom(a), e), a) for a, e in side] for side in (factors, given))
            for a, b in _paired(*atoms):
                self._meet_atoms(self._forms.atoms[a], self._forms.atoms[b])

    def _meet_atoms(self, ours: Atom, theirs: Atom) -> None:
        if ours is theirs:
            return
        pairs: Iterable[tuple[Poly, Poly]] = zip(ours.inputs, theirs.inputs, strict=True)
        if _commutes(ours):
            one, other = ([(self.skeleton(p), p) for p in side] for side in (ours.inputs, theirs.inputs))
            pairs = _paired(one, other)
        for a, b in pairs:
            self.meet(a, b)


def _commutes(atom: Atom) -> bool:
    return atom.view is None and isinstance(atom.head, Declared) and atom.head.commutative


def _paired(ours: Sequence[tuple[object, _T]], theirs: Sequence[tuple[object, _T]]) -> Iterable[tuple[_T, _T]]:
    """What has one key, in pairs: first what is the same, then in order."""
    left: dict[object, list[_T]] = defaultdict(list)
    for key, thing in theirs:
        left[key].append(thing)
    same = [(key, thing) for key, thing in ours if thing in left[key]]
    for key, thing in same:
        left[key].remove(thing)
    yield from ((thing, thing) for _, thing in same)
    for key, thing in ours:
        if (key, thing) not in same:
            yield thing, left[key].pop(0)
