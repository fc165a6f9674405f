"""Where rewrites apply in a graph, and which of those at a term saves most: remembered for each term."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial

from superopt.search.rewriting.application import Application, Template, difference, seconds_saved
from superopt.search.rewriting.distribute import distributed, distributing
from superopt.search.rewriting.finders.fewer import Fewer
from superopt.search.rewriting.fold import Folding
from superopt.search.rewriting.groups import Groups
from superopt.search.rewriting.parting import parting, taken_apart
from superopt.search.rewriting.regroup import regrouped, regrouping
from superopt.search.rewriting.rewrites import Fold, Less, Rewrite
from superopt.search.rewriting.rough import Rough
from superopt.search.rewriting.together import Together
from superopt.search.rewriting.window import Windows
from superopt.term import Graph, Operator, Term, make, variable

FOLLOWING = 0.99
"""What brings together what saves work counts as this share of that, so that what is together already comes first."""


class Matching:
    """Finds applications of rewrites. What may replace a term does not depend on what stands around it."""

    def __init__(self, rewrites: Sequence[Rewrite], sizes: Mapping[str, int] | None = None) -> None:
        """`sizes` are those of symbols, at which it is told what saves work."""
        self._rewrites, self._sizes = tuple(rewrites), dict(sizes or {})
        self.rough = Rough(self._sizes)
        self._less: dict[frozenset[str], Matching] = {}
        self._only: tuple[frozenset[str], Matching | None] | None = None
        self._folding = Folding([r for r in rewrites if isinstance(r, Fold)])
        self._regrouping, self._distributing = regrouping(rewrites), distributing(rewrites)
        self._parting = parting(rewrites)
        self._finders: list[tuple[Rewrite, Fewer]] = [(r, r.finder()) for r in rewrites if isinstance(r, Less)]
        self._of_head: dict[type[Operator], list[tuple[Rewrite, Fewer]]] = {}
        self._found: dict[Term, list[Application]] = {}
        self._best: dict[Term, Application | None] = {}
        self._folds: dict[Term, list[Application]] = {}
        self._regroups: dict[Term, list[Application]] = {}
        self._fewer: dict[Term, list[Application]] = {}
        self._windows = Windows()
        self._groups = Groups(rewrites, self._windows, self.rough)
        self._together = Together(rewrites, self._windows, self.rough)

    def forget_terms(self) -> None:
        """Forget where terms match, as another graph is begun; what matches in windows is remembered."""
        for known in (self._found, self._best, self._folds, self._regroups, self._fewer):
            known.clear()
        for knows in (self._groups, self._together, self._folding, self._windows):
            knows.forget_terms()
        for _, finder in self._finders:
            finder.forget_terms()
        self.rough.forget_terms()

    def without(self, names: frozenset[str]) -> Matching:
        """The same but for rewrites of these names; remembered, since an index of thousands of rules takes a while."""
        if names not in self._less:
            self._less[names] = Matching([r for r in self._rewrites if r.name not in names], self._sizes)
        return self._less[names]

    def only(self, names: frozenset[str]) -> Matching | None:
        """The same with rewrites of these names alone, as it was last asked for; None where there are none of them."""
        if self._only is None or self._only[0] != names:
            alone = [r for r in self._rewrites if r.name in names]
            self._only = names, Matching(alone, self._sizes) if alone else None
        return self._only[1]

    @cached_property
    def definitions(self) -> Matching | None:
        """The same with definitions alone; None where there is nothing beside them, or none of them."""
        alone = [r for r in self._rewrites if r.known == "definition"]
        return Matching(alone, self._sizes) if 0 < len(alone) < len(self._rewrites) else None

    @cached_property
    def finders(self) -> Matching | None:
        """The same with what is found across many operators alone; None where there is nothing beside that, or none."""
        alone = [r for r in self._rewrites if isinstance(r, Less)]
        return Matching(alone, self._sizes) if 0 < len(alone) < len(self._rewrites) else None

    def applications(self, graph: Graph) -> Iterator[Application]:
        """Every rewrite that applies to a graph; those of several terms last."""
        of_each = by_operator(graph)
        for of_one in of_each.values():
            for term in of_one:
                yield from self.at(term)
        yield from self._together.applications(graph, of_each)

    def at(self, term: Term) -> list[Application]:
        """The rewrites that replace a term alone."""
        if term not in self._found:
            made = [Application(t, (term,), group.depth) for group in self._groups.of(term) for t in group.templates]
            self._found[term] = made + self._folded(term) + self._regrouped(term) + self._of_fewer(term)
        return self._found[term]

    def best(self, term: Term) -> Application | None:
        """The rewrite of a term alone that saves most, if any does; the first of those that save as much."""
        if term not in self._best:
            made = [Application(g.best, (term,), g.depth) for g in self._groups.of(term) if g.best is not None]
            others = (*self._folded(term), *self._regrouped(term), *self._of_fewer(term))
            made += [a for a in others if a.template.saves > 0]
            self._best[term] = max(made, key=lambda a: a.template.saves, default=None)
        return self._best[term]

    def _folded(self, term: Term) -> list[Application]:
        """Definitions read backwards at a term that leave fewer operators: others are names for what runs."""
        if term not in self._folds:
            folds, found = list(self._folding.at(term)), list[Application]()
            before = self.rough.each((term,)) if folds else {}
            for fold, made in folds:
                gone, come = difference(before, self.rough.each((made,)))
                if len(come) < len(gone):
                    found.append(Application(Template(fold, (made,), (), seconds_saved(gone, come)), (term,), None))
            self._folds[term] = found
        return self._folds[term]

    def _regrouped(self, term: Term) -> list[Application]:
        """Sums of several terms with two brought together that save something so, products multiplied out that do, and
        what is joined taken apart: by what they save then.
        """
        if term not in self._regroups:
            saved = partial(self._saved, term)
            together = (*regrouped(term, saved, self._regrouping), *distributed(term, saved, self._distributing))
            apart = taken_apart(term, partial(self._saved_of_part, saved), self._parting)
            self._regroups[term] = [
                *(_towards(term, rule, made, saves) for rule, made, saves in together),
                *(_towards(term, rule, made, saves, more=FOLLOWING * saves) for rule, made, saves in apart),
            ]
        return self._regroups[term]

    def _saved(self, term: Term, pair: Term) -> float:
        """What is saved of a pair of a term's parts; of constants, all that the term takes."""
        if pair.constant:
            return self.rough.alone(term)
        best = self.best(pair)
        return best.template.saves if best else 0.0

    def _saved_of_part(self, saved: Callable[[Term], float], term: Term) -> float:
        """What is saved of an operator on a part alone; on a constant one, all that it takes where it runs."""
        if not term.constant:
            return saved(term)
        part, other = term.inputs
        return self.rough.alone(make(term.operator, (variable("part", part.shape, part.type.dtype), other)))

    def _of_fewer(self, term: Term) -> list[Application]:
        """A term of which only some places are read, computed of no others; or of which many are the same, of one."""
        if term not in self._fewer:
            found = self._fewer[term] = list[Application]()
            for rewrite, finder in self._looking_at(type(term.operator)):
                if (made := finder.of(term)) is not None:
                    gone, come = difference(self.rough.each((term,)), self.rough.each((made,)))
                    saves = max(sum(gone.values()) - sum(come.values()), 0.0)
                    found.append(Application(Template(rewrite, (made,), (), saves), (term,), None))
        return self._fewer[term]

    def _looking_at(self, head: type[Operator]) -> list[tuple[Rewrite, Fewer]]:
        """The finders that look at terms of an operator."""
        if head not in self._of_head:
            self._of_head[head] = [(r, finder) for r, finder in self._finders if issubclass(head, finder.heads)]
        return self._of_head[head]


def _towards(term: Term, rule: Rewrite, made: Term, saves: float, more: float = 0.0) -> Application:
    """A term regrouped, for what that saves later."""
    return Application(Template(rule, (made,), (), FOLLOWING * saves, regroups=True, more=more), (term,), None)


def by_operator(graph: Graph) -> dict[str, list[Term]]:
    """The terms of a graph that run, by operator; what is made of constants alone is left to folding."""
    found: dict[str, list[Term]] = {}
    for term in graph.runs:
        found.setdefault(term.operator.name, []).append(term)
    return found
