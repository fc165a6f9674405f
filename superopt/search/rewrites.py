"""Everything that the search may do to a graph, behind one interface: proved rules, and definitions unfolded."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from superopt.dim import assuming
from superopt.operators.declare import Declared
from superopt.rules.match import build, matches
from superopt.rules.rule import Rule
from superopt.search.narrow import narrowed
from superopt.term import Graph, Term, replace_all, subterms

Known = Literal["proved", "definition"]
Places: TypeAlias = dict[str, list[Term]]
"""The terms of a graph, by operator."""


class Rewrite(Protocol):
    """One way of replacing terms in a graph by equal ones."""

    @property
    def name(self) -> str:
        """What the report calls it."""

    @property
    def known(self) -> Known:
        """How it is known that both sides are equal."""

    def applications(self, places: Places) -> Iterator[dict[Term, Term]]:
        """What may be replaced by what in a graph whose terms are these, each a replacement of one place."""


@dataclass(frozen=True)
class ByRule:
    """A proved rule, at every place where it matches."""

    rule: Rule
    known: Known = "proved"

    @property
    def name(self) -> str:
        """The rule's name."""
        return self.rule.name

    def applications(self, places: Places) -> Iterator[dict[Term, Term]]:
        """Replacements for all sources of the rule together, at different terms that do not depend on each other."""
        choices = [places.get(s.operator.name, []) for s in self.rule.source]
        for roots in itertools.product(*choices):
            if len(set(roots)) < len(roots):
                continue
            for bindings in matches(self.rule, roots):
                with assuming():  # the proof says that the target is well formed wherever the source is
                    built = build(self.rule, bindings)
                bound = [term for pattern, term in bindings.tensors.items() if pattern.is_variable]
                if built is not None and not _cyclic(roots, bound):
                    yield dict(zip(roots, built, strict=True))


@dataclass(frozen=True)
class Unfold:
    """A composite operator by its definition."""

    operator: str
    known: Known = "definition"

    @property
    def name(self) -> str:
        """What the report calls it."""
        return f"definition of {self.operator}"

    def applications(self, places: Places) -> Iterator[dict[Term, Term]]:
        """Each term of the operator, by the term that it stands for."""
        for term in places.get(self.operator, []):
            assert isinstance(term.operator, Declared)
            with assuming() as conditions:
                meanings = term.operator.definitions(*term.inputs)
            # That no tensor is empty may be assumed of symbolic sizes, as when a model is read.
            if all(c.relation == "<=" for c in conditions):
                yield from ({term: meaning} for meaning in meanings)


def by_operator(graph: Graph) -> Places:
    """The terms of a graph that run, by operator; what is made of constants alone is left to folding."""
    found: Places = {}
    for term in subterms(*graph.outputs):
        if not term.is_variable and not term.constant:
            found.setdefault(term.operator.name, []).append(term)
    return found


def applied(graph: Graph, new: dict[Term, Term]) -> Graph:
    """The graph with terms replaced, everything above them made anew."""
    with assuming():  # both sides are of one type, so what held of symbolic sizes above the place still does
        return Graph(graph.inputs, narrowed(replace_all(graph.outputs, new)))


def rewrites_of(rules: Sequence[Rule], definitions: Sequence[str]) -> list[Rewrite]:
    """Definitions first (they are few, and change most), then rules."""
    found: list[Rewrite] = []
    found.extend(map(Unfold, definitions))
    found.extend(map(ByRule, rules))
    return found


def _cyclic(roots: Sequence[Term], bound: Sequence[Term]) -> bool:
    """Whether something that a match binds depends on what it replaces, which would close a cycle."""
    if len(roots) == 1:
        return False
    below = set(subterms(*bound))
    return any(root in below for root in roots)
