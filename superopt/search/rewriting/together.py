"""Where rewrites of several terms apply in a graph: at terms of which none is computed from another."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from superopt.rules.index import Index
from superopt.search.rewriting.abreast import Joining
from superopt.search.rewriting.application import Application, Template, difference, seconds_saved, templates_of
from superopt.search.rewriting.rewrites import Abreast, Rewrite
from superopt.search.rewriting.rough import Rough
from superopt.search.rewriting.window import Key, Windows, is_leaf, window
from superopt.term import Graph, Term

Needs: TypeAlias = Mapping[Term, tuple[int, int]]
"""Of each running term its own bit, and the bits of all that it is computed from and its own."""


class Together:
    """Finds applications of rewrites that replace several terms. What they make of a window is found once."""

    def __init__(self, rewrites: Sequence[Rewrite], windows: Windows, rough: Rough) -> None:
        self._rewrites = [r for r in rewrites if len(r.heads) > 1]
        self._counts = [len(r.heads) for r in self._rewrites]
        self._windows, self._rough = windows, rough
        self._abreast = next((r for r in rewrites if isinstance(r, Abreast)), None)
        self._joining = Joining()
        self._parts: Index[tuple[int, int]] = Index(is_leaf)
        for number, rewrite in enumerate(self._rewrites):
            for place, pattern in enumerate(rewrite.patterns):
                self._parts.insert(pattern, (number, place))
        self._fits: dict[Term, list[tuple[int, int]]] = {}
        self._both: dict[tuple[int, Key], list[Template]] = {}

    def forget_terms(self) -> None:
        """Forget where terms match; what matches in windows is remembered."""
        self._fits.clear()
        self._parts.forget_terms()
        self._joining.forget_terms()

    def applications(self, graph: Graph, of_each: Mapping[str, Sequence[Term]]) -> Iterator[Application]:
        """Every rewrite of several terms that applies to a graph, whose terms that run are given by operator."""
        terms = [t for of_one in of_each.values() for t in of_one]
        places: dict[tuple[int, int], list[Term]] = {}
        for term in terms:
            if term not in self._fits:
                self._fits[term] = self._parts.fitting(term)
            for part in self._fits[term]:
                places.setdefault(part, []).append(term)
        needs = _needs(graph)
        for number, rewrite in enumerate(self._rewrites):
            if (number, 0) not in places:
                continue
            for roots in itertools.product(*(places.get((number, i), ()) for i in range(self._counts[number]))):
                if _are_apart(roots, needs):
                    yield from self._at_all(number, rewrite, roots)
        yield from self._side_by_side(of_each.values(), needs)

    def _at_all(self, number: int, rewrite: Rewrite, roots: tuple[Term, ...]) -> list[Application]:
        key = number, self._windows.key(roots, rewrite.depth)
        if key not in self._both:
            self._both[key] = templates_of([rewrite], window(roots, rewrite.depth), self._rough)
        return [Application(t, roots, rewrite.depth) for t in self._both[key]]

    def _side_by_side(self, groups: Iterable[Sequence[Term]], needs: Needs) -> Iterator[Application]:
        """Two terms of one operator as slices of one value, where that leaves fewer operators: two products alone are
        joined by rules.
        """
        if self._abreast is None:
            return
        for *roots, one, other in self._joining.pairs(groups, lambda both: _are_apart(both, needs)):
            gone, come = difference(self._rough.each(roots), self._rough.each((one, other)))
            if len(come) < len(gone):
                yield Application(
                    Template(self._abreast, (one, other), (), seconds_saved(gone, come)), tuple(roots), None
                )


def _needs(graph: Graph) -> Needs:
    found: dict[Term, tuple[int, int]] = {}
    for number, term in enumerate(graph.runs):
        bits = own = 1 << number
        for i in term.inputs:
            if i in found:
                bits |= found[i][1]
        found[term] = own, bits
    return found


def _are_apart(roots: tuple[Term, ...], needs: Needs) -> bool:
    """Whether they are different, and none is computed from another: replaced together they would close a cycle."""
    together = 0
    for root in roots:
        together |= needs[root][0]
    return together.bit_count() == len(roots) and all(needs[r][1] & together == needs[r][0] for r in roots)
