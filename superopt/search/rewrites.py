"""Everything that the search may do to a graph, behind one interface: proved rules, and definitions unfolded."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol

from superopt.cost.domains import foreign
from superopt.dim import assuming
from superopt.operators.declare import FURTHER_DEFINITIONS, Declared
from superopt.rules.match import build, matches
from superopt.rules.rule import Rule, of_any_rank
from superopt.search.narrow import narrowed
from superopt.term import Graph, Term, replace_all, subterms

Known = Literal["proved", "definition"]


class Rewrite(Protocol):
    """One way of replacing terms by equal ones."""

    @property
    def name(self) -> str:
        """What the report calls it."""

    @property
    def known(self) -> Known:
        """How it is known that both sides are equal."""

    @property
    def heads(self) -> tuple[str, ...]:
        """The operators of the terms that it replaces together; they do not depend on each other."""

    def may_fit(self, term: Term) -> bool:
        """A quick test of a first term: where it fails, there is no match."""

    def at(self, roots: tuple[Term, ...]) -> Iterator[tuple[Term, ...]]:
        """What terms of these operators may be replaced by, one for each."""


@dataclass(frozen=True)
class ByRule:
    """A proved rule, where its sources match."""

    rule: Rule
    known: Known = "proved"

    @property
    def name(self) -> str:
        """The rule's name."""
        return self.rule.name

    @property
    def heads(self) -> tuple[str, ...]:
        """The operators of its sources."""
        return tuple(s.operator.name for s in self.rule.source)

    @cached_property
    def _below(self) -> tuple[int | None, tuple[str, ...], bool]:
        """Of the first source: rank, operators of the inputs (None and empty for any), whether these may be swapped."""
        source = self.rule.source[0]
        names = tuple("" if i.is_variable else i.operator.name for i in source.inputs)
        rank = None if of_any_rank(source) else source.type.rank
        return rank, names, isinstance(source.operator, Declared) and source.operator.commutative

    def may_fit(self, term: Term) -> bool:
        """Whether the rank is right, and the operators of the inputs."""
        rank, names, swaps = self._below
        if rank is not None and term.type.rank != rank:
            return False
        given = [i.operator.name for i in term.inputs]
        return _agree(names, given) or (swaps and _agree(names, given[::-1]))

    def at(self, roots: tuple[Term, ...]) -> Iterator[tuple[Term, ...]]:
        """The targets, for every match of all sources together."""
        for bindings in matches(self.rule, roots):
            with assuming():  # the proof says that the target is well formed wherever the source is
                built = build(self.rule, bindings)
            bound = [term for pattern, term in bindings.tensors.items() if pattern.is_variable]
            if built is not None and not _cyclic(roots, bound):
                yield built


@dataclass(frozen=True)
class Unfold:
    """An operator by a term that defines it: its own, or one of `FURTHER_DEFINITIONS` by that name."""

    definition: str
    known: Known = "definition"

    @property
    def name(self) -> str:
        """What the report calls it."""
        return f"definition of {self.definition}"

    @property
    def heads(self) -> tuple[str, ...]:
        """The operator."""
        return (FURTHER_DEFINITIONS[self.definition][0] if self._further else self.definition,)

    @property
    def _further(self) -> bool:
        return self.definition in FURTHER_DEFINITIONS

    def _meanings(self, operator: Declared, inputs: tuple[Term, ...]) -> tuple[Term, ...]:
        if not self._further:
            return operator.definitions(*inputs)
        meaning = FURTHER_DEFINITIONS[self.definition][1](operator, *inputs)
        return () if meaning is None else (meaning,)

    def may_fit(self, term: Term) -> bool:
        """Always: the definition itself says."""
        return True

    def at(self, roots: tuple[Term, ...]) -> Iterator[tuple[Term, ...]]:
        """The terms that it stands for."""
        (term,) = roots
        assert isinstance(term.operator, Declared)
        with assuming() as conditions:
            meanings = self._meanings(term.operator, term.inputs)
        # That no tensor is empty may be assumed of symbolic sizes, as when a model is read.
        if all(c.relation == "<=" for c in conditions):
            yield from ((meaning,) for meaning in meanings)


class Matching:
    """Where rewrites apply.

    Most terms of a graph are those of the graph that it was made from, and what may replace a term does not depend on
    what stands around it. So it is looked for once, and remembered as long as this object.
    """

    def __init__(self, rewrites: Sequence[Rewrite]) -> None:
        self._alone: dict[str, list[Rewrite]] = {}
        self._together: list[Rewrite] = []
        for rewrite in rewrites:
            if len(rewrite.heads) == 1:
                self._alone.setdefault(rewrite.heads[0], []).append(rewrite)
            else:
                self._together.append(rewrite)
        self._found: dict[Term, list[tuple[Rewrite, dict[Term, Term]]]] = {}

    def applications(self, graph: Graph) -> Iterator[tuple[Rewrite, dict[Term, Term]]]:
        """Every rewrite that applies to a graph, with the terms that it replaces and what by."""
        places = by_operator(graph)
        for terms in places.values():
            for term in terms:
                yield from self._at(term)
        for rewrite in self._together:
            for roots in itertools.product(*(places.get(head, []) for head in rewrite.heads)):
                if len(set(roots)) == len(roots):
                    for new in rewrite.at(roots):
                        yield rewrite, dict(zip(roots, new, strict=True))

    def _at(self, term: Term) -> list[tuple[Rewrite, dict[Term, Term]]]:
        if term not in self._found:
            rewrites = [r for r in self._alone.get(term.operator.name, []) if r.may_fit(term)]
            self._found[term] = [(rewrite, {term: new}) for rewrite in rewrites for (new,) in rewrite.at((term,))]
        return self._found[term]


def _agree(wanted: Sequence[str], given: Sequence[str]) -> bool:
    return all(w in ("", g) for w, g in zip(wanted, given, strict=True))


def by_operator(graph: Graph) -> dict[str, list[Term]]:
    """The terms of a graph that run, by operator; what is made of constants alone is left to folding."""
    found: dict[str, list[Term]] = {}
    for term in subterms(*graph.outputs):
        if not term.is_variable and not term.constant:
            found.setdefault(term.operator.name, []).append(term)
    return found


def applied(graph: Graph, new: dict[Term, Term], narrow: dict[Term, Term] | None = None) -> Graph:
    """The graph with terms replaced, everything above them made anew; `narrow` is what `narrowed` remembers."""
    with assuming():  # both sides are of one type, so what held of symbolic sizes above the place still does
        return Graph(graph.inputs, narrowed(replace_all(graph.outputs, new), narrow))


def rewrites_of(rules: Sequence[Rule], definitions: Sequence[str]) -> list[Rewrite]:
    """Definitions first (they are few, and change most), then rules.

    A rule that brings in an operator of another domain is left out: that has no kernel whose time would speak for it.
    """
    found: list[Rewrite] = []
    found.extend(map(Unfold, definitions))
    found.extend(ByRule(rule) for rule in rules if foreign(rule.target) <= foreign(rule.source))
    return found


def _cyclic(roots: Sequence[Term], bound: Sequence[Term]) -> bool:
    """Whether something that a match binds depends on what it replaces, which would close a cycle."""
    if len(roots) == 1:
        return False
    below = set(subterms(*bound))
    return any(root in below for root in roots)
