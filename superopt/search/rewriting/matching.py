"""Where rewrites apply in a graph: found once for each window, since a rewrite leaves most of what others see as is."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TypeAlias

from superopt.operators.constant import Band
from superopt.operators.facts import supposing
from superopt.operators.meanings import SHALLOW
from superopt.rules.index import Index
from superopt.search.rewriting.abreast import Joining
from superopt.search.rewriting.distribute import distributed, distributing
from superopt.search.rewriting.finders.fewer import Fewer
from superopt.search.rewriting.fold import Folding
from superopt.search.rewriting.parting import parting, taken_apart
from superopt.search.rewriting.regroup import regrouped, regrouping
from superopt.search.rewriting.rewrites import Abreast, Fold, Less, Rewrite
from superopt.search.rewriting.rough import Rough
from superopt.search.rewriting.window import Key, Window, Windows, below, is_leaf, placed, window
from superopt.term import Graph, Term, make, subterms, variable

FOLLOWING = 0.99
"""What brings together what saves work counts as this share of that, so that what is together already comes first."""


@dataclass(frozen=True)
class Template:
    """What a rewrite makes of the roots of a window, over its leaves.

    `saves` is 0 unless it leaves less work, in rough seconds; of what rules make also no more operators to run. What
    only `regroups` brings together what will save that, and may leave so much `more` work until then.
    """

    rewrite: Rewrite
    targets: tuple[Term, ...]
    leaves: tuple[Term, ...]
    saves: float
    regroups: bool = False
    more: float = 0.0


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
        made = self.template.targets
        if self.depth is not None:
            made = placed(made, self.template.leaves, below(self.roots, self.depth))
        return dict(zip(self.roots, made, strict=True))


Numbered: TypeAlias = "tuple[int, Rewrite]"
"""A rewrite with its place in the order of all."""


@dataclass(frozen=True)
class Group:
    """What rewrites that look equally deep make of a window: the place of the first of them in the order of all, and
    of what they make the `best`, where anything saves work.
    """

    first: int
    depth: int
    templates: list[Template]
    best: Template | None


class Matching:
    """Finds applications of rewrites. What may replace a term does not depend on what stands around it."""

    def __init__(self, rewrites: Sequence[Rewrite], sizes: Mapping[str, int] | None = None) -> None:
        """`sizes` are those of symbols, at which it is told what saves work."""
        self._rewrites, self._sizes = tuple(rewrites), dict(sizes or {})
        self.rough = Rough(self._sizes)
        self._less: dict[frozenset[str], Matching] = {}
        self._untold: dict[str, list[Numbered]] = {}
        self._shallow: Index[Numbered] = Index(is_leaf)
        self._deep: Index[Numbered] = Index(is_leaf)
        self._together = [r for r in rewrites if len(r.heads) > 1]
        self._counts = [len(r.heads) for r in self._together]
        self._parts: Index[tuple[int, int]] = Index(is_leaf)
        self._folding = Folding([r for r in rewrites if isinstance(r, Fold)])
        self._regrouping, self._distributing = regrouping(rewrites), distributing(rewrites)
        self._parting = parting(rewrites)
        self._abreast = next((r for r in rewrites if isinstance(r, Abreast)), None)
        self._joining = Joining()
        self._fewer: list[tuple[Rewrite, Fewer]] = [(r, r.finder()) for r in rewrites if isinstance(r, Less)]
        for numbered in enumerate(rewrites):
            number, rewrite = numbered
            if len(rewrite.heads) != 1:
                continue
            if not rewrite.patterns:
                # Before all others, and never deep.
                self._untold.setdefault(rewrite.heads[0], []).append((number - len(rewrites), rewrite))
            else:
                index = self._shallow if rewrite.depth <= SHALLOW else self._deep
                index.insert(rewrite.patterns[0], numbered)
        for number, rewrite in enumerate(self._together):
            for place, pattern in enumerate(rewrite.patterns):
                self._parts.insert(pattern, (number, place))
        self._found: dict[Term, list[Application]] = {}
        self._best: dict[Term, Application | None] = {}
        self._folds: dict[Term, list[Application]] = {}
        self._regroups: dict[Term, list[Application]] = {}
        self._fits: dict[Term, list[tuple[int, int]]] = {}
        self._windows = Windows()
        self._groups: dict[Key, Group] = {}
        self._both: dict[tuple[int, Key], list[Template]] = {}

    def forget_terms(self) -> None:
        """Forget where terms match, as another graph is begun; what matches in windows is remembered."""
        for known in (self._found, self._best, self._folds, self._regroups, self._fits):
            known.clear()
        for knows in (
            self._shallow,
            self._deep,
            self._parts,
            self._folding,
            self._joining,
            self._windows,
        ):
            knows.forget_terms()
        for _, finder in self._fewer:
            finder.forget_terms()
        self.rough.forget_terms()

    def without(self, names: frozenset[str]) -> Matching:
        """The same but for rewrites of these names; remembered, since an index of thousands of rules takes a while."""
        if names not in self._less:
            self._less[names] = Matching([r for r in self._rewrites if r.name not in names], self._sizes)
        return self._less[names]

    @cached_property
    def definitions(self) -> Matching | None:
        """The same with definitions alone; None where there is nothing beside them, or none of them."""
        alone = [r for r in self._rewrites if r.known == "definition"]
        return Matching(alone, self._sizes) if 0 < len(alone) < len(self._rewrites) else None

    def applications(self, graph: Graph) -> Iterator[Application]:
        """Every rewrite that applies to a graph; those of several terms last."""
        of_each = by_operator(graph)
        terms = [t for of_one in of_each.values() for t in of_one]
        for term in terms:
            yield from self.at(term)
        places: dict[tuple[int, int], list[Term]] = {}
        for term in terms:
            if term not in self._fits:
                self._fits[term] = self._parts.fitting(term)
            for part in self._fits[term]:
                places.setdefault(part, []).append(term)
        needs = _needs(graph)
        for number, rewrite in enumerate(self._together):
            if (number, 0) not in places:
                continue
            for roots in itertools.product(*(places.get((number, i), ()) for i in range(self._counts[number]))):
                if _are_apart(roots, needs):
                    yield from self._at_all(number, rewrite, roots)
        yield from (a for a in self._side_by_side(of_each.values()) if _are_apart(a.roots, needs))

    def at(self, term: Term) -> list[Application]:
        """The rewrites that replace a term alone."""
        if term not in self._found:
            made = [Application(t, (term,), group.depth) for group in self._groups_of(term) for t in group.templates]
            self._found[term] = made + self._folded(term) + self._regrouped(term) + self._of_fewer(term)
        return self._found[term]

    def best(self, term: Term) -> Application | None:
        """The rewrite of a term alone that saves most, if any does; the first of those that save as much."""
        if term not in self._best:
            made = [Application(g.best, (term,), g.depth) for g in self._groups_of(term) if g.best is not None]
            others = (*self._folded(term), *self._regrouped(term), *self._of_fewer(term))
            made += [a for a in others if a.template.saves > 0]
            self._best[term] = max(made, key=lambda a: a.template.saves, default=None)
        return self._best[term]

    def _groups_of(self, term: Term) -> list[Group]:
        return sorted((self._of_shallow(term), *self._of_deep(term)), key=lambda group: group.first)

    def _folded(self, term: Term) -> list[Application]:
        """Definitions read backwards at a term that leave fewer operators: others are names for what runs."""
        if term not in self._folds:
            folds, found = list(self._folding.at(term)), list[Application]()
            before = self.rough.each((term,)) if folds else {}
            for fold, made in folds:
                gone, come = _difference(before, self.rough.each((made,)))
                if len(come) < len(gone):
                    found.append(Application(Template(fold, (made,), (), _saved(gone, come)), (term,), None))
            self._folds[term] = found
        return self._folds[term]

    def _regrouped(self, term: Term) -> list[Application]:
        """Sums of several terms with two brought together that save something so, products multiplied out that do, and
        what is joined taken apart: by what they save then.
        """

        def saved(pair: Term) -> float:
            best = None if pair.constant else self.best(pair)
            return self.rough.alone(term) if pair.constant else best.template.saves if best else 0.0

        if term not in self._regroups:
            together = (*regrouped(term, saved, self._regrouping), *distributed(term, saved, self._distributing))
            apart = taken_apart(term, partial(self._saved_of_part, saved), self._parting)
            self._regroups[term] = [
                *(_towards(term, rule, made, saves) for rule, made, saves in together),
                *(_towards(term, rule, made, saves, more=FOLLOWING * saves) for rule, made, saves in apart),
            ]
        return self._regroups[term]

    def _saved_of_part(self, saved: Callable[[Term], float], term: Term) -> float:
        """What is saved of an operator on a part alone; on a constant one, all that it takes where it runs."""
        if not term.constant:
            return saved(term)
        part, other = term.inputs
        return self.rough.alone(make(term.operator, (variable("part", part.shape, part.type.dtype), other)))

    def _of_fewer(self, term: Term) -> list[Application]:
        """A term of which only some places are read, computed of no others; or of which many are the same, of one."""
        found: list[Application] = []
        for rewrite, finder in self._fewer:
            if (made := finder.of(term)) is not None:
                gone, come = _difference(self.rough.each((term,)), self.rough.each((made,)))
                saves = max(sum(gone.values()) - sum(come.values()), 0.0)
                found.append(Application(Template(rewrite, (made,), (), saves), (term,), None))
        return found

    def _side_by_side(self, groups: Iterable[Sequence[Term]]) -> Iterator[Application]:
        """Two terms of one operator as slices of one value, where that leaves fewer operators: two products alone are
        joined by rules.
        """
        if self._abreast is None:
            return
        for *roots, one, other in self._joining.pairs(groups):
            gone, come = _difference(self.rough.each(roots), self.rough.each((one, other)))
            if len(come) < len(gone):
                yield Application(Template(self._abreast, (one, other), (), _saved(gone, come)), tuple(roots), None)

    def _of_shallow(self, term: Term) -> Group:
        """What rewrites that are not deep make of a term.

        Which of them fit is found once for a window as well: they see no more of a term.
        """
        key = self._windows.key((term,), SHALLOW)
        if key not in self._groups:
            fitting = [*self._untold.get(term.operator.name, ()), *self._shallow.fitting(term)]
            self._groups[key] = self._group(fitting, term, SHALLOW)
        return self._groups[key]

    def _of_deep(self, term: Term) -> Iterator[Group]:
        """The same of those that are deep, for each depth."""
        by_depth: dict[int, list[Numbered]] = {}
        for numbered in self._deep.fitting(term):
            by_depth.setdefault(numbered[1].depth, []).append(numbered)
        for depth, fitting in by_depth.items():
            key = self._windows.key((term,), depth)
            if key not in self._groups:
                self._groups[key] = self._group(fitting, term, depth)
            yield self._groups[key]

    def _at_all(self, number: int, rewrite: Rewrite, roots: tuple[Term, ...]) -> list[Application]:
        key = number, self._windows.key(roots, rewrite.depth)
        if key not in self._both:
            self._both[key] = _templates([rewrite], window(roots, rewrite.depth), self.rough)
        return [Application(t, roots, rewrite.depth) for t in self._both[key]]

    def _group(self, fitting: Sequence[Numbered], term: Term, depth: int) -> Group:
        templates = _templates([r for _, r in fitting], window((term,), depth), self.rough) if fitting else []
        best = max(templates, key=lambda t: t.saves, default=None)
        saving = best if best is not None and best.saves else None
        return Group(fitting[0][0] if fitting else 0, depth, templates, saving)


def _towards(term: Term, rule: Rewrite, made: Term, saves: float, more: float = 0.0) -> Application:
    """A term regrouped, for what that saves later."""
    return Application(Template(rule, (made,), (), FOLLOWING * saves, regroups=True, more=more), (term,), None)


def _needs(graph: Graph) -> dict[Term, tuple[int, int]]:
    """Of each running term its own bit, and the bits of all that it is computed from and its own."""
    found: dict[Term, tuple[int, int]] = {}
    for number, term in enumerate(graph.runs):
        bits = own = 1 << number
        for i in term.inputs:
            if i in found:
                bits |= found[i][1]
        found[term] = own, bits
    return found


def _are_apart(roots: tuple[Term, ...], needs: Mapping[Term, tuple[int, int]]) -> bool:
    """Whether they are different, and none is computed from another: replaced together they would close a cycle."""
    together = 0
    for root in roots:
        together |= needs[root][0]
    return together.bit_count() == len(roots) and all(needs[r][1] & together == needs[r][0] for r in roots)


def by_operator(graph: Graph) -> dict[str, list[Term]]:
    """The terms of a graph that run, by operator; what is made of constants alone is left to folding."""
    found: dict[str, list[Term]] = {}
    for term in graph.runs:
        found.setdefault(term.operator.name, []).append(term)
    return found


def _templates(rewrites: Sequence[Rewrite], seen: Window, rough: Rough) -> list[Template]:
    """What rewrites make of a window, but for those that compute all that they replace, and more."""
    found: list[Template] = []
    before = rough.each(seen.roots)
    with supposing(seen.facts):
        for rewrite in rewrites:
            for targets in rewrite.at(seen.roots):
                if not _can_be_written(targets):
                    continue
                gone, come = _difference(before, rough.each(targets))
                if len(targets) == 1 and rewrite.known == "proved" and _names(gone) < _names(come):
                    continue  # another way to compute an operator is what definitions are for
                found.append(Template(rewrite, targets, seen.leaves, _saved(gone, come)))
    return found


def _can_be_written(targets: Sequence[Term]) -> bool:
    """Whether no identity is made of a size that is a symbol: ONNX has none that is not data."""
    return all(t.sized or not isinstance(t.operator, Band) for t in subterms(*targets))


def _difference(before: Mapping[Term, float], after: Mapping[Term, float]) -> tuple[dict[Term, float], ...]:
    """The terms that are gone, and those that came, with their seconds."""
    return {t: s for t, s in before.items() if t not in after}, {t: s for t, s in after.items() if t not in before}


def _names(terms: Iterable[Term]) -> Counter[str]:
    return Counter(t.operator.name for t in terms)


def _saved(gone: Mapping[Term, float], come: Mapping[Term, float]) -> float:
    """The rough seconds that a rewrite leaves less; 0 where it leaves more work, or more operators to run."""
    return max(sum(gone.values()) - sum(come.values()), 0.0) if len(come) <= len(gone) else 0.0
