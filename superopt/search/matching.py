"""Where rewrites apply in a graph: found once for each window, since a rewrite leaves most of what others see as is."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from superopt.cost.analytic import AnalyticCost
from superopt.operators.facts import supposing
from superopt.search.fold import Folding
from superopt.search.index import Index
from superopt.search.rewrites import Fold, Rewrite
from superopt.search.window import Key, Window, Windows, below, placed, window
from superopt.term import Graph, Term, running

SHALLOW = 3
"""Rewrites that look less deep share the windows of this depth."""

_ROUGH = AnalyticCost()


@dataclass(frozen=True)
class Template:
    """What a rewrite makes of the roots of a window.

    `saves` is 0 unless it leaves less work, and no more operators to run; then it is that work, in rough seconds.
    """

    rewrite: Rewrite
    targets: tuple[Term, ...]
    saves: float


@dataclass(frozen=True)
class Application:
    """A rewrite at a place: the terms that it replaces, and what by.

    The template is over a window of that depth; where that is None, over the graph itself.
    """

    template: Template
    roots: tuple[Term, ...]
    depth: int | None

    @cached_property
    def new(self) -> dict[Term, Term]:
        """What each of the terms is replaced by."""
        targets = self.template.targets
        if self.depth is not None:
            targets = placed(targets, below(self.roots, self.depth))
        return dict(zip(self.roots, targets, strict=True))


class Matching:
    """Finds applications of rewrites. What may replace a term does not depend on what stands around it."""

    def __init__(self, rewrites: Sequence[Rewrite]) -> None:
        self._untold: dict[str, list[Rewrite]] = {}
        self._alone: Index[Rewrite] = Index()
        self._together = [r for r in rewrites if len(r.heads) > 1]
        self._parts: Index[tuple[int, int]] = Index()
        self._folding = Folding([r for r in rewrites if isinstance(r, Fold)])
        for rewrite in rewrites:
            if len(rewrite.heads) != 1:
                continue
            if rewrite.patterns:
                self._alone.insert(rewrite.patterns[0], rewrite)
            else:
                self._untold.setdefault(rewrite.heads[0], []).append(rewrite)
        for number, rewrite in enumerate(self._together):
            for place, pattern in enumerate(rewrite.patterns):
                self._parts.insert(pattern, (number, place))
        self._found: dict[Term, list[Application]] = {}
        self._fits: dict[Term, list[tuple[int, int]]] = {}
        self._windows = Windows()
        self._templates: dict[Key, list[Template]] = {}
        self._both: dict[tuple[int, Key], list[Template]] = {}
        self._apart: dict[tuple[Term, ...], bool] = {}

    def forget_terms(self) -> None:
        """Forget where terms match, as another graph is begun; what matches in windows is remembered."""
        for known in (self._found, self._fits, self._apart):
            known.clear()
        for knows in (self._alone, self._parts, self._folding):
            knows.forget_terms()

    def applications(self, graph: Graph) -> Iterator[Application]:
        """Every rewrite that applies to a graph; those of several terms last."""
        terms = [t for of_one in by_operator(graph).values() for t in of_one]
        for term in terms:
            yield from self.at(term)
        places: dict[tuple[int, int], list[Term]] = {}
        for term in terms:
            if term not in self._fits:
                self._fits[term] = self._parts.fitting(term)
            for part in self._fits[term]:
                places.setdefault(part, []).append(term)
        for number, rewrite in enumerate(self._together):
            for roots in itertools.product(*(places.get((number, i), []) for i in range(len(rewrite.heads)))):
                if len(set(roots)) == len(roots) and self._are_apart(roots):
                    yield from self._at_all(number, rewrite, roots)

    def at(self, term: Term) -> list[Application]:
        """The rewrites that replace a term alone."""
        if term not in self._found:
            by_depth: dict[int, list[Rewrite]] = {}
            for rewrite in (*self._untold.get(term.operator.name, ()), *self._alone.fitting(term)):
                by_depth.setdefault(max(rewrite.depth, SHALLOW), []).append(rewrite)
            found = self._found[term] = []
            for depth, fitting in by_depth.items():
                key = self._windows.key((term,), depth)
                if key not in self._templates:
                    seen = window((term,), depth)
                    self._templates[key] = [t for r in fitting for t in _templates(r, seen)]
                found += [Application(t, (term,), depth) for t in self._templates[key]]
            found += self._folded(term)
        return self._found[term]

    def _folded(self, term: Term) -> Iterator[Application]:
        """Definitions read backwards at a term that leave fewer operators: others are names for what runs."""
        for fold, made in self._folding.at(term):
            gone, come = _difference((term,), (made,))
            if len(come) < len(gone):
                yield Application(Template(fold, (made,), _saved((term,), (made,))), (term,), None)

    def _at_all(self, number: int, rewrite: Rewrite, roots: tuple[Term, ...]) -> list[Application]:
        key = number, self._windows.key(roots, rewrite.depth)
        if key not in self._both:
            self._both[key] = list(_templates(rewrite, window(roots, rewrite.depth)))
        return [Application(t, roots, rewrite.depth) for t in self._both[key]]

    def _are_apart(self, roots: tuple[Term, ...]) -> bool:
        """Whether none is computed from another: replaced together they would close a cycle."""
        if roots not in self._apart:
            under = set(running(*(i for r in roots for i in r.inputs)))
            self._apart[roots] = under.isdisjoint(roots)
        return self._apart[roots]


def by_operator(graph: Graph) -> dict[str, list[Term]]:
    """The terms of a graph that run, by operator; what is made of constants alone is left to folding."""
    found: dict[str, list[Term]] = {}
    for term in graph.runs:
        found.setdefault(term.operator.name, []).append(term)
    return found


def _templates(rewrite: Rewrite, seen: Window) -> Iterator[Template]:
    """What a rewrite makes of a window, unless it computes all that it replaces, and more."""
    with supposing(seen.facts):
        for targets in rewrite.at(seen.roots):
            gone, come = _difference(seen.roots, targets)
            names, more = (Counter(t.operator.name for t in terms) for terms in (gone, come))
            if len(targets) == 1 and names < more and rewrite.known == "proved":
                continue  # another way to compute an operator is what definitions are for
            yield Template(rewrite, targets, _saved(seen.roots, targets))


def _saved(old: Sequence[Term], new: Sequence[Term]) -> float:
    """The rough seconds that a rewrite leaves less; 0 where it leaves more work, or more operators to run."""
    gone, come = _difference(old, new)
    return max(sum(gone.values()) - sum(come.values()), 0.0) if len(come) <= len(gone) else 0.0


def _difference(old: Sequence[Term], new: Sequence[Term]) -> tuple[dict[Term, float], dict[Term, float]]:
    """The terms that only the one and only the other need, with the rough seconds of each."""
    before, after = ({t: s for t in running(*roots) if (s := _ROUGH.alone(t))} for roots in (old, new))
    gone = {t: s for t, s in before.items() if t not in after}
    return gone, {t: s for t, s in after.items() if t not in before}
