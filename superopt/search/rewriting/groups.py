"""What rules and definitions make of a term alone, by how deep they look: found once for all terms of one window."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from superopt.operators.meanings import SHALLOW
from superopt.rules.index import Index
from superopt.search.rewriting.application import Template, templates_of
from superopt.search.rewriting.rewrites import Rewrite
from superopt.search.rewriting.rough import Rough
from superopt.search.rewriting.window import Key, Windows, is_leaf, window
from superopt.term import Term

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


class Groups:
    """Finds what rewrites of one term make of it, but for those that have finders of their own."""

    def __init__(self, rewrites: Sequence[Rewrite], windows: Windows, rough: Rough) -> None:
        self._windows, self._rough = windows, rough
        self._untold: dict[str, list[Numbered]] = {}
        self._shallow: Index[Numbered] = Index(is_leaf)
        self._deep: Index[Numbered] = Index(is_leaf)
        self._known: dict[Key, Group] = {}
        self._told: dict[Term, list[Group]] = {}
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

    def forget_terms(self) -> None:
        """Forget which rewrites fit terms; what they make of windows is remembered."""
        self._told.clear()
        self._shallow.forget_terms()
        self._deep.forget_terms()

    def of(self, term: Term) -> list[Group]:
        """Those of a term, in the order of their first rewrites."""
        if term not in self._told:
            groups = (self._of_shallow(term), *self._of_deep(term))
            self._told[term] = sorted(groups, key=lambda group: group.first)
        return self._told[term]

    def _of_shallow(self, term: Term) -> Group:
        """What rewrites that are not deep make of a term.

        Which of them fit is found once for a window as well: they see no more of a term.
        """
        key = self._windows.key((term,), SHALLOW)
        if key not in self._known:
            fitting = [*self._untold.get(term.operator.name, ()), *self._shallow.fitting(term)]
            self._known[key] = self._group(fitting, term, SHALLOW)
        return self._known[key]

    def _of_deep(self, term: Term) -> Iterator[Group]:
        """The same of those that are deep, for each depth."""
        by_depth: dict[int, list[Numbered]] = {}
        for numbered in self._deep.fitting(term):
            by_depth.setdefault(numbered[1].depth, []).append(numbered)
        for depth, fitting in by_depth.items():
            key = self._windows.key((term,), depth)
            if key not in self._known:
                self._known[key] = self._group(fitting, term, depth)
            yield self._known[key]

    def _group(self, fitting: Sequence[Numbered], term: Term, depth: int) -> Group:
        templates = templates_of([r for _, r in fitting], window((term,), depth), self._rough) if fitting else []
        best = max(templates, key=lambda t: t.saves, default=None)
        saving = best if best is not None and best.saves else None
        return Group(fitting[0][0] if fitting else 0, depth, templates, saving)
