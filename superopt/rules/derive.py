"""Whether rules derive an equation: the directed steps that lead from one side to the other.

A step rewrites terms anywhere below the outputs. Steps are tried in breadth, so the fewest are found; what has more
operators than is allowed is not gone through, since a search for cheaper graphs would not either.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from superopt.dim import Dim, assuming, substitute
from superopt.errors import ShapeError, SuperoptError, Undecided
from superopt.operators.declare import Declared
from superopt.operators.instances import all_symbols
from superopt.operators.layout import Expand
from superopt.rules.match import build, commuted, instance_of, matches
from superopt.rules.rule import Rule
from superopt.term import Term, replace_all, subterms

State = tuple[Term, ...]
"""The outputs of a graph."""

STATES = 3000
"""How many graphs are looked at, at most, for one derivation."""


SIZES = ((8, 8), (2, 32), (32, 2))
"""The sizes at which work is compared: of every other symbol, in order of name, the one or the other."""


@dataclass(frozen=True)
class Step:
    """A rule, and the graph that it led to."""

    rule: Rule
    result: State


class Rules:
    """Rules to derive with, found by the operators of their sources."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._by_head: dict[str, list[tuple[frozenset[str], Rule]]] = defaultdict(list)
        for rule in rules:
            self.add(rule)

    def add(self, rule: Rule) -> None:
        """One rule more."""
        names = frozenset().union(*map(_names, rule.source))
        self._by_head[rule.source[0].operator.name].append((names, rule))

    def one_step(self, state: State) -> Iterator[Step]:
        """All graphs that one rule makes of a graph, each once for each rule."""
        with assuming():
            below = [t for t in subterms(*state) if not t.is_variable]
        names = {t: _names(t) for t in below}
        for root in below:
            for needed, rule in self._by_head[root.operator.name]:
                if len(rule.source) == 1 and needed <= names[root]:
                    yield from _applied(rule, (root,), state)
                elif len(rule.source) > 1 and needed <= frozenset().union(*names.values()):
                    for others in itertools.permutations(below, len(rule.source) - 1):
                        yield from _applied(rule, (root, *others), state)

    def steps(
        self, source: State, target: State, most: int = 3, more: int = 1, much: float = math.inf
    ) -> list[Step] | None:
        """The fewest steps from one graph to another, at most `most`, through graphs of at most `more` operators more
        than the larger of the two, and of at most `much` times its work at any of `SIZES`; None where there are none,
        or more than `STATES` graphs would have to be looked at.
        """
        wanted, allowed = _key(target), _most(work(source), work(target))
        limit = max(operators(source), operators(target)) + more
        seen = {_key(source)}
        frontier: list[tuple[State, list[Step]]] = [(source, [])]
        if wanted in seen:
            return []
        for _ in range(most):
            ahead: list[tuple[State, list[Step]]] = []
            for state, so_far in frontier:
                for step in self.one_step(state):
                    key = _key(step.result)
                    if key == wanted:
                        return [*so_far, step]
                    if key in seen or len(seen) >= STATES or operators(step.result) > limit:
                        continue
                    seen.add(key)
                    if much == math.inf or all(w <= much * a for w, a in zip(work(step.result), allowed, strict=True)):
                        ahead.append((step.result, [*so_far, step]))
            frontier = ahead
        return None

    def covering(self, rule: Rule) -> Rule | None:
        """A rule of which another is an instance, if there is one."""
        for needed, general in self._by_head[rule.source[0].operator.name]:
            if needed <= frozenset().union(*map(_names, rule.source)) and instance_of(rule, general):
                return general
        return None


def operators(state: State) -> int:
    """The number of operators of a graph, but for broadcasts."""
    return sum(not t.is_variable and not isinstance(t.operator, Expand) for t in subterms(*state))


def work(state: State) -> tuple[int, ...]:
    """The operations of the contractions in a graph, at each of `SIZES`."""
    names = sorted(set(all_symbols(*state)))
    found = []
    for pair in SIZES:
        sizes = {name: pair[i % 2] for i, name in enumerate(names)}
        counts = (substitute(_contracting(t), sizes) for t in subterms(*state))
        found.append(sum(c for c in counts if isinstance(c, int)))
    return tuple(found)


def _contracting(term: Term) -> Dim:
    op = term.operator
    if not isinstance(op, Declared) or len(op.linear) < 2 or type(op).flops is Declared.flops:
        return 0
    return op.flops(term.shape, *(i.shape for i in term.inputs))


def _most(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(map(max, a, b))


def _names(term: Term) -> frozenset[str]:
    return frozenset(t.operator.name for t in subterms(term) if not t.is_variable)


def _key(state: State) -> State:
    return tuple(map(commuted, state))


def _applied(rule: Rule, roots: State, state: State) -> Iterator[Step]:
    if len(set(roots)) < len(roots):
        return
    for bindings in matches(rule, roots):
        with assuming():  # sizes are symbols, and what they must meet is what the graph is well formed for
            built = build(rule, bindings)
            if built is None or built == roots:
                continue
            try:
                yield Step(rule, replace_all(state, dict(zip(roots, built, strict=True))))
            except (ShapeError, Undecided, SuperoptError):
                continue
