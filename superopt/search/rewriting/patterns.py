"""Definitions as patterns: the form of what a composite operator means, matched against the forms of a graph.

A match is a guess: coefficients are passed over, since attributes are among them. What it gives is what the operator's
inputs may be; whether they are, the definition over them says (`fold.py`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from superopt.dim import Dim
from superopt.operators.declared import Declared
from superopt.search.rewriting.forms import Forms
from superopt.search.rewriting.sums import Atom, Factors, Poly, View, axes_of, without
from superopt.term import Term

Bound: TypeAlias = "tuple[View, Poly]"
"""What a variable stands for: the form that a view of it has."""

Bindings: TypeAlias = "Mapping[Term, Bound]"


@dataclass(frozen=True)
class Match:
    """What a match bound."""

    bound: Bindings
    sizes: tuple[tuple[Dim, Dim], ...] = ()
    """Sizes among the attributes of operators that met: the pattern's and the graph's."""

    def of_sizes(self, ours: Sequence[Dim], theirs: Sequence[Dim]) -> Match:
        """With sizes of two operators, as many of each as both have."""
        return replace(self, sizes=(*self.sizes, *zip(ours, theirs, strict=False))) if ours else self


class Matcher:
    """Matches forms of one object; `variables` are the leaves that may stand for anything."""

    def __init__(self, forms: Forms, variables: Sequence[Term]) -> None:
        self.forms, self.variables = forms, frozenset(variables)

    def sums(self, ours: Poly, theirs: Poly, match: Match) -> Iterator[Match]:
        """How a sum of products may be another, up to coefficients: bare variables take what nothing else does."""
        bare = [p for p in ours if self._bare(p[0]) is not None]
        if len(ours) == 1 and not bare:
            if len(theirs) == 1:
                yield from self.products(ours[0][0], theirs[0][0], match)
            return
        firm = [p for p in ours if p not in bare]
        yield from self._summands(firm, bare, theirs, match)

    def _summands(
        self, firm: Sequence[tuple[Factors, float]], bare: Sequence[tuple[Factors, float]], theirs: Poly, match: Match
    ) -> Iterator[Match]:
        if not firm:
            yield from self._rest_of_sum(bare, theirs, match)
            return
        (factors, _), *others = firm
        for i, (given, _) in enumerate(theirs):
            for found in self.products(factors, given, match):
                yield from self._summands(others, bare, (*theirs[:i], *theirs[i + 1 :]), found)

    def _rest_of_sum(self, bare: Sequence[tuple[Factors, float]], theirs: Poly, match: Match) -> Iterator[Match]:
        """What is left of a sum goes to the variables: to each what it can hold, in the order of what they read."""
        rest = theirs
        for factors, _ in sorted(bare, key=lambda p: self._reach(p[0][0][0])):
            atom = self.forms.atoms[factors[0][0]]
            own = tuple(p for p in rest if all(self.forms.axes(a) <= axes_of(atom.view) for a, _ in p[0]))
            if (known := self._known(atom, match)) is not None:
                own = tuple(p for p in rest if p[0] in {f for f, _ in known})
            rest = tuple(p for p in rest if p not in own)
            bound = self._bind(atom, own, match)
            if bound is None:
                return
            match = bound
        if not rest:
            yield match

    def products(self, ours: Factors, theirs: Factors, match: Match) -> Iterator[Match]:
        """How a product may be another: variables take the factors that nothing else does."""
        firm = [(a, e) for a, e in ours if not self._is_variable(a)]
        free = [(a, e) for a, e in ours if self._is_variable(a)]
        yield from self._factors(firm, free, theirs, match)

    def _factors(
        self, firm: Sequence[tuple[int, int]], free: Sequence[tuple[int, int]], theirs: Factors, match: Match
    ) -> Iterator[Match]:
        if not firm:
            yield from self._rest_of_product(free, theirs, match)
            return
        (ours, exponent), *others = firm
        for i, (given, e) in enumerate(theirs):
            if e == exponent:
                for found in self._atoms(self.forms.atoms[ours], self.forms.atoms[given], match):
                    yield from self._factors(others, free, (*theirs[:i], *theirs[i + 1 :]), found)

    def _rest_of_product(self, free: Sequence[tuple[int, int]], theirs: Factors, match: Match) -> Iterator[Match]:
        rest = theirs
        unbound = list[tuple[int, int]]()
        for number, exponent in free:
            known = self._known(self.forms.atoms[number], match)
            if known is None:
                unbound.append((number, exponent))
                continue
            _, factors = self.forms.factored(known)
            rest = without(rest, tuple((a, e * exponent) for a, e in factors))
        for number, exponent in sorted(unbound, key=lambda f: self._reach(f[0])):
            atom = self.forms.atoms[number]
            own = [(a, e) for a, e in rest if self.forms.axes(a) <= axes_of(atom.view) and e % exponent == 0]
            rest = tuple(f for f in rest if f not in own)
            bound = self._bind(atom, self.forms.of_factors(tuple((a, e // exponent) for a, e in own)), match)
            if bound is None:
                return
            match = bound
        if not rest:
            yield match

    def _atoms(self, ours: Atom, theirs: Atom, match: Match) -> Iterator[Match]:
        if ours.head is None or theirs.head is None:
            if ours.head is theirs.head:
                yield from self.sums(ours.inputs[0], theirs.inputs[0], match)
            return
        if isinstance(ours.head, Term) or isinstance(theirs.head, Term):
            if ours is theirs:
                yield match
            return
        if not _alike(ours.head, theirs.head) or not _views_agree(ours.view, theirs.view):
            return
        assert isinstance(ours.head, Declared)
        assert isinstance(theirs.head, Declared)
        match = match.of_sizes(ours.head.sizes(), theirs.head.sizes())
        commute = ours.view is None and ours.head.commutative
        for inputs in itertools.permutations(theirs.inputs) if commute else (theirs.inputs,):
            found = [match]
            for p, t in zip(ours.inputs, inputs, strict=True):
                found = [b for a in found for b in self.sums(p, t, a)]
            yield from found

    def _is_variable(self, atom: int) -> bool:
        return self.forms.atoms[atom].head in self.variables

    def _bare(self, factors: Factors) -> int | None:
        single = len(factors) == 1 and factors[0][1] == 1 and self._is_variable(factors[0][0])
        return factors[0][0] if single else None

    def _known(self, atom: Atom, match: Match) -> Poly | None:
        assert isinstance(atom.head, Term)
        bound = match.bound.get(atom.head)
        return None if bound is None or not _views_agree(atom.view, bound[0]) else bound[1]

    def _bind(self, atom: Atom, poly: Poly, match: Match) -> Match | None:
        """A match in which a variable stands for a form; None where it stands for another, up to a factor."""
        assert isinstance(atom.head, Term)
        assert atom.view is not None
        known = self._known(atom, match)
        if known is not None:
            return match if self.forms.monic(known) == self.forms.monic(poly) else None
        return replace(match, bound={atom.head: (atom.view, poly), **match.bound})

    def _reach(self, atom: int) -> int:
        return len(axes_of(self.forms.atoms[atom].view))


def _views_agree(ours: View | None, theirs: View | None) -> bool:
    """Whether two views are one; of sizes of 1, which nothing reads, the pattern does not know."""
    if ours is None or theirs is None:
        return ours is theirs
    return len(ours) == len(theirs) and all(t in (None, o) for o, t in zip(ours, theirs, strict=True))


def _alike(ours: object, theirs: object) -> bool:
    """Whether two operators are one but for sizes, which are symbols in a pattern."""
    if type(ours) is not type(theirs):
        return False
    assert isinstance(ours, Declared)
    assert isinstance(theirs, Declared)
    return ours.structure() == theirs.structure()
