"""Whether rules derive an equation: the directed steps that lead from one side to the other.

A step rewrites terms anywhere below the outputs. Steps are tried in breadth, so the fewest are found; what has more
operators than is allowed is not gone through, since a search for cheaper graphs would not either.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import NamedTuple, TypeAlias

from superopt.dim import Dim, assuming, substitute
from superopt.errors import SuperoptError
from superopt.operators.declare import Declared
from superopt.operators.facts import supposing
from superopt.operators.instances import all_symbols
from superopt.operators.layout import Expand
from superopt.rules.index import Index
from superopt.rules.match import build, commuted, instance_of, matches
from superopt.rules.rule import Rule
from superopt.term import Fact, Term, replace_all, running, subterms

State = tuple[Term, ...]
"""The outputs of a graph."""

STATES = 3000
"""How many graphs are looked at, at most, for one derivation."""


SMALL, MIDDLE, LARGE = 2, 8, 32
"""The sizes at which work is compared, see `kinds_of_sizes`."""


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


class Rules:
    """Rules to derive with, found by their first sources. Of some it may be asked that they are `final`, see `steps`.

    What they make of a term is kept, since graphs that are looked at one after the other share most of theirs.
    """

    def __init__(self, rules: Iterable[Rule], final: Callable[[Rule], bool] = lambda _: False) -> None:
        self._is_final = final
        self._final: set[int] = set()
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
        if self._is_final(rule):
            self._final.add(id(rule))
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

    def _key(self, state: State) -> State:
        return tuple(map(self._ordered, state))

    def steps(
        self,
        source: State,
        target: State,
        most: int = 3,
        more: int = 1,
        much: float = math.inf,
        facts: tuple[Fact, ...] = (),
        beyond_final: bool = True,
    ) -> list[Step] | None:
        """The fewest steps from one graph to another, at most `most`, through graphs of at most `more` operators more
        than the larger of the two, and of at most `much` times its work at any of the `kinds_of_sizes`; None where
        there are none, or more than `STATES` graphs would have to be looked at. `facts` are known of the variables. Not
        going `beyond_final`, nothing is made of what a final rule made.
        """
        given, wanted = self._key(source), self._key(target)
        if given == wanted:
            return []
        if not most:
            return None
        kinds = kinds_of_sizes(source) or _all_kinds(source)
        counted: dict[Term, list[int]] = {}
        allowed = [much * max(both) for both in zip(work(source, kinds), work(target, kinds), strict=True)]
        limit = max(operators(source), operators(target)) + more
        seen = {given}
        frontier: list[tuple[State, list[Step]]] = [(source, [])]
        aim = Target.of(wanted)
        for number in range(1, most + 1):
            ahead: list[tuple[State, list[Step]]] = []
            for state, so_far in frontier:
                for step in self.one_step(state, facts, aim if number == most else None):
                    key = self._key(step.result)
                    if key == wanted:
                        return [*so_far, step]
                    if number == most or key in seen or (id(step.rule) in self._final and not beyond_final):
                        continue
                    if len(seen) >= STATES or operators(step.result) > limit:
                        continue
                    seen.add(key)
                    if much == math.inf or all(map(operator.le, work(step.result, kinds, counted), allowed)):
                        ahead.append((step.result, [*so_far, step]))
            frontier = ahead
        return None

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


def operators(state: State) -> int:
    """The number of operators of a graph that run, but for broadcasts: what is made of constants costs nothing."""
    return sum(not isinstance(t.operator, Expand) for t in running(*state))


def kinds_of_sizes(state: State, ones: Iterable[str] = ()) -> list[dict[str, int]]:
    """Values for all symbols: all the same, every other small and large, in order of name, and each small alone; but of
    some always 1. Those at which the terms have no elements are left out.
    """
    dims = {dim for t in subterms(*state) for dim in t.shape}
    kinds = [kind | dict.fromkeys(ones, 1) for kind in _all_kinds(state)]
    return [kind for kind in kinds if all(_is_positive(d, kind) for d in dims)]


def _all_kinds(state: State) -> list[dict[str, int]]:
    names = sorted(set(all_symbols(*state)))
    each = [dict.fromkeys(names, LARGE) | {name: SMALL} for name in names]
    turns = [{name: (SMALL, LARGE)[i % 2 == first] for i, name in enumerate(names)} for first in (0, 1)]
    return [dict.fromkeys(names, MIDDLE), *turns, *each]


def _is_positive(dim: Dim, kind: Mapping[str, int]) -> bool:
    size = substitute(dim, kind)
    return isinstance(size, int) and size > 0


def work(state: State, kinds: Sequence[Mapping[str, int]], counted: dict[Term, list[int]] | None = None) -> list[int]:
    """The operations of the contractions in a graph, at each of the sizes given. What is `counted` of terms at these
    sizes is remembered.
    """
    counted = {} if counted is None else counted
    terms = subterms(*state)
    for term in terms:
        if term not in counted:
            dim = _contracting(term)
            sizes = [dim] * len(kinds) if isinstance(dim, int) else [substitute(dim, kind) for kind in kinds]
            counted[term] = [size if isinstance(size, int) else 0 for size in sizes]
    return [sum(counted[term][i] for term in terms) for i in range(len(kinds))]


def _contracting(term: Term) -> Dim:
    op = term.operator
    if not isinstance(op, Declared) or len(op.linear) < 2 or type(op).flops is Declared.flops:
        return 0
    return op.flops(term.shape, *(i.shape for i in term.inputs))


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
