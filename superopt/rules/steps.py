"""Steps of a derivation: the graphs that one rule makes of a graph, anywhere below its outputs."""

from __future__ import annotations

import itertools
import operator
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import NamedTuple, TypeAlias

from superopt.demands import assuming
from superopt.errors import SuperoptError
from superopt.operators.facts import supposing
from superopt.operators.layout import Expand
from superopt.rules.index import Index
from superopt.rules.match import build, commuted, instance_of, matches
from superopt.rules.rule import Rule
from superopt.term import Fact, Term, replace_all, subterms

State = tuple[Term, ...]
"""The outputs of a graph."""

KEPT = 200_000
"""Of how many terms it is kept, at most, what rules make of them."""


@dataclass(frozen=True)
class Step:
    """A rule, and the graph that it led to."""

    rule: Rule
    result: State


class Asked(NamedTuple):
    """A rule and its number; the names of the operators in its sources, and of those in its targets that are in what
    it makes.
    """

    number: int
    rule: Rule
    takes: frozenset[str]
    gives: frozenset[str]


Part: TypeAlias = "tuple[int, int]"
"""The number of a rule, and which of its sources."""


@dataclass
class Made:
    """The rules that may fit a term, of the first so many `asked`; what they make of it, as far as that is known."""

    fitting: list[Asked] = field(default_factory=list)
    asked: int = 0
    built: dict[int, tuple[State, ...]] = field(default_factory=dict)


class Steps:
    """Makes steps of rules, which are found by their first sources.

    What they make of a term is kept, since graphs that are looked at one after the other share most of theirs.
    """

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._by_source: Index[Asked] = Index()
        self._further: Index[Part] = Index()
        self._parts: dict[Term, tuple[int, list[Part]]] = {}
        self._made: dict[tuple[tuple[Fact, ...], Term], Made] = {}
        self._in_order: dict[Term, Term] = {}
        for rule in rules:
            self.add(rule)

    def add(self, rule: Rule) -> None:
        """One rule more."""
        number = len(self._by_source)
        gives = _names(*rule.target) - {Expand.name}
        self._by_source.insert(rule.source[0], Asked(number, rule, _names(*rule.source), gives))
        for place, source in enumerate(rule.source[1:], start=1):
            self._further.insert(source, (number, place))

    def one_step(self, state: State, facts: tuple[Fact, ...] = (), to: Target | None = None) -> Iterator[Step]:
        """All graphs that one rule makes of a graph of whose variables some facts are known, each once for each rule;
        with a target those alone that may be it.
        """
        with assuming():
            below = [t for t in subterms(*state) if not t.is_variable]
        where = below if to is None else to.where(below, self._ordered)
        places = self._places(below)
        for root in below:
            for asked, made in self._made_of(root, facts, to):
                results: Iterable[tuple[State, State]] = (((root,), b) for b in made) if root in where else ()
                if len(asked.rule.source) > 1:
                    further = [places[asked.number, i] for i in range(1, len(asked.rule.source))]
                    results = _with_others(asked.rule, root, further, facts)
                for roots, built in results:
                    if to is None or all(self._ordered(t) in to.parts for t in built):
                        step = _replaced(asked.rule, roots, built, state)
                        if step is not None:
                            yield step

    def _made_of(
        self, root: Term, facts: tuple[Fact, ...], to: Target | None
    ) -> Iterator[tuple[Asked, tuple[State, ...]]]:
        """What rules make of a term; with a target, those whose operators it has. Of those with several sources this
        is not known yet.
        """
        if len(self._made) > KEPT:
            self._made.clear()
            self._by_source.forget_terms()
        made = self._made.setdefault((facts, root), Made())
        if made.asked < len(self._by_source):
            made.fitting += self._by_source.fitting(root, since=made.asked)
            made.asked = len(self._by_source)
        for i, asked in enumerate(made.fitting):
            if to is None or asked.gives <= to.names:
                if i not in made.built:
                    alone = len(asked.rule.source) == 1
                    made.built[i] = tuple(_built(asked.rule, (root,), facts)) if alone else ()
                yield asked, made.built[i]

    def _places(self, below: Sequence[Term]) -> Mapping[Part, Sequence[Term]]:
        """For each further source of rules the terms that it may stand for."""
        if len(self._parts) > KEPT:
            self._parts.clear()
            self._further.forget_terms()
        found: dict[Part, list[Term]] = defaultdict(list)
        for term in below:
            asked, parts = self._parts.get(term, (0, []))
            if asked < len(self._further):
                parts = [*parts, *self._further.fitting(term, since=asked)]
                self._parts[term] = len(self._further), parts
            for part in parts:
                found[part].append(term)
        return found

    def _ordered(self, term: Term) -> Term:
        if len(self._in_order) > KEPT:
            self._in_order.clear()
        return commuted(term, self._in_order)

    def key(self, state: State) -> State:
        """A graph with its terms in order: equal for graphs that are the same."""
        return tuple(map(self._ordered, state))

    def covering(self, rule: Rule) -> Rule | None:
        """A rule of which another is an instance, if there is one."""
        names = _names(*rule.source)
        for _, general, takes, _ in self._by_source.fitting(rule.source[0]):
            if takes <= names and instance_of(rule, general):
                return general
        return None


@dataclass(frozen=True)
class Target:
    """What the last step leads to: its terms, all that the step may make, and the names of their operators."""

    parts: frozenset[Term]
    names: frozenset[str]

    @classmethod
    def of(cls, state: State) -> Target:
        """That of a graph, whose terms are in order."""
        return cls(frozenset(subterms(*state)), _names(*state))

    def where(self, below: Sequence[Term], ordered: Callable[[Term], Term]) -> Container[Term]:
        """The terms of a graph, inputs before users, where one step may leave nothing that is no part of the target:
        what is none stays, unless it is computed from what is replaced, or is computed for that alone.
        """
        needs: dict[Term, int] = {}
        for i, term in enumerate(below):
            needs[term] = reduce(operator.or_, (needs.get(t, 0) for t in term.inputs), 1 << i)
        allowed = -1
        for i, term in enumerate(below):
            if ordered(term) not in self.parts:
                allowed &= needs[term] | sum(1 << j for j, user in enumerate(below) if needs[user] >> i & 1)
        return {term for i, term in enumerate(below) if allowed >> i & 1}


def _names(*terms: Term) -> frozenset[str]:
    return frozenset(t.operator.name for t in subterms(*terms) if not t.is_variable)


def _with_others(
    rule: Rule, root: Term, further: Sequence[Sequence[Term]], facts: tuple[Fact, ...]
) -> list[tuple[State, State]]:
    """A term beside all others that the further sources of a rule may stand for, and what the rule makes of them."""
    apart = [(root, *others) for others in itertools.product(*further) if len({root, *others}) == len(rule.source)]
    return [(roots, built) for roots in apart for built in _built(rule, roots, facts)]


def _built(rule: Rule, roots: State, facts: tuple[Fact, ...]) -> Iterator[State]:
    """What a rule makes of terms."""
    with supposing(facts):
        found = list(matches(rule, roots))
    with assuming():  # sizes are symbols, and what they must meet is what the graph is well formed for
        for bindings in found:
            built = build(rule, bindings)
            if built is not None and built != roots:
                yield built


def _replaced(rule: Rule, roots: State, built: State, state: State) -> Step | None:
    try:
        with assuming():
            return Step(rule, replace_all(state, dict(zip(roots, built, strict=True))))
    except SuperoptError:
        return None
