"""The graphs that a search moves among: what is one rewrite away, simplified, and never twice the same."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import wraps

from superopt.cost.model import Cost
from superopt.demands import assuming
from superopt.errors import SuperoptError
from superopt.operators.declared import Declared
from superopt.search.rewriting.application import Application
from superopt.search.rewriting.empties import refusing
from superopt.search.rewriting.matching import Matching
from superopt.search.rewriting.narrow import narrowed
from superopt.search.rewriting.rewrites import Fold, Rewrite
from superopt.search.strategies.found import INTERRUPTED, Applied, Found, Limits, Outcome, Replaced, Strategy
from superopt.term import Graph, Term, made_over, running

DESCENTS = 16
"""How many simplifications may follow a rewrite."""

ROUNDING = 1.0 + 1e-9
"""Sums of the same seconds in another order are the same."""

NEAR = 4
"""How far above the deepest new operator further simplifications are looked for."""


class Space:
    """Graphs equal to a start. Remembers which were seen, by what runs in them: constants count by type alone.

    What is made of constants is computed before the model runs, so graphs that differ there alone take the same time,
    and nearly always the same rewrites.
    """

    def __init__(self, start: Graph, matching: Matching, cost: Cost, tried: Sequence[Replaced] | None = None) -> None:
        """Graphs that `tried` makes of the start count as seen, and so does what the start simplifies to."""
        self._matching, self._cost, self._untried = matching, cost, tried is None
        self._may_refuse = refusing(start.runs)
        matching.forget_terms()
        self._narrow: dict[Term, Term] = {}
        self._prints: dict[Term, int] = {}
        self._known = {self.print(start), *(self.print_after(start, new) for new in tried or ())}
        self.seen, self.candidates = 1, 1

    def neighbours(self, here: Found) -> Iterator[Found]:
        """Every graph one rewrite away that was not seen before, and what it simplifies to, with estimated costs."""
        old = frozenset(here.graph.runs)
        self.print(here.graph)
        for application in self._matching.applications(here.graph):
            self.candidates += 1
            key = self.print_after(here.graph, application.new)
            step = None if key in self._known else self._stepped(here, application)
            if step is not None:
                self._note(key)
                yield from self._estimated(step)
                yield from self._simplified(step, old)

    def simplified(self, start: Found, deadline: float = math.inf) -> Iterator[Found]:
        """What the start simplifies to, near its inputs and at all depths, if it was not seen before: until a time of
        `time.monotonic`.
        """
        if self._untried:
            yield from self._simplified(start, frozenset())
            yield from self._simplified(start, frozenset(), near=math.inf, deadline=deadline)

    def everywhere(self, here: Found) -> Iterator[Found]:
        """What each rewrite makes of a graph at all of its places at once, and what that simplifies to, if it was not
        seen before.

        How data is laid out pays where neighbours agree, so one of them alone may lead nowhere. Of a joined piece each
        part was begun so already: nothing is made of its start.
        """
        if not (self._untried or here.steps):
            return
        old, places = frozenset(here.graph.runs), dict[Rewrite, dict[Term, Application]]()
        for term in reversed(here.graph.runs):  # what is below a term stays as it is while that is replaced
            for application in self._matching.at(term):
                places.setdefault(application.template.rewrite, {}).setdefault(term, application)
        for applications in places.values():
            step = self._stepped_all(here, applications) if len(applications) > 1 else None
            if step is not None and self._is_new(step.graph):
                yield from self._estimated(step)
                yield from self._simplified(step, old)

    def _is_new(self, graph: Graph) -> bool:
        """Whether no such graph was seen before; from now on it was."""
        key = self.print(graph)
        if key in self._known:
            return False
        self._note(key)
        return True

    def _note(self, key: int) -> None:
        """That a graph of this print was seen."""
        self._known.add(key)
        self.seen += 1

    def _estimated(self, found: Found) -> Iterator[Found]:
        if not self._may_refuse and refusing(found.graph.runs):
            return
        try:
            seconds = self._cost.estimate(found.graph)
        except SuperoptError:  # sizes that the graph does not accept
            return
        if math.isfinite(seconds):
            yield Found(found.graph, seconds, found.steps)

    def _stepped(self, here: Found, application: Application) -> Found | None:
        """The graph with one rewrite applied; None where types do not allow that."""
        try:
            graph = applied(here.graph, application.new, self._narrow)
        except SuperoptError:
            return None
        rewrite = application.template.rewrite
        steps = tuple(Applied(rewrite.name, rewrite.known, rewrite.by, b, a) for b, a in application.new.items())
        return Found(graph, here.cost, (*here.steps, *steps))

    def _stepped_all(self, here: Found, applications: Mapping[Term, Application]) -> Found | None:
        """The graph with several terms rewritten one after the other, those that still run; None if that is one."""
        before = len(here.steps)
        for term, application in applications.items():
            if term in here.graph.runs:
                here = self._stepped(here, application) or here
        return here if len(here.steps) > before + 1 else None

    def _simplified(
        self, found: Found, old: Container[Term], near: float = NEAR, deadline: float = math.inf
    ) -> Iterator[Found]:
        """A graph after rewrites that leave less to compute, as long as there are any where it is not `old`, and so
        `near` above, and there is time; of those on the way the one that leaves least.

        What a rewrite saves is told by its window: where something else takes what is below, it may save nothing.
        """
        start = least = found
        seen, lowest = {self.print(start.graph)}, math.inf
        for _ in range(DESCENTS):
            if time.monotonic() > deadline:
                break
            savings = [a for t in _changed(found.graph, old, near) if (a := self._matching.best(t)) is not None]
            # What an operator is read into comes last: it would take in what belongs to the weights.
            savings.sort(key=lambda a: (isinstance(a.template.rewrite, Fold), -a.template.saves))
            work = self._matching.rough.whole(found.graph) if savings else 0.0
            lowest = min(lowest, work)
            step = next((s for a in savings if (s := self._saving(found, a, work, seen)) is not None), None)
            if step is None:
                break
            found, left = step
            if left <= lowest * ROUNDING:
                least, lowest = found, left
        if least is not start and self._is_new(least.graph):
            yield from self._estimated(least)

    def _saving(self, here: Found, application: Application, work: float, seen: set[int]) -> tuple[Found, float] | None:
        """The graph with a rewrite applied that leaves less work, and that; or no more than before, and than what it
        brings together may leave until it saves that. Not one that was `seen` on this way.
        """
        self.candidates += 1
        template = application.template
        most = work * ROUNDING + template.more if template.regroups else work / ROUNDING
        step = self._stepped(here, application)
        if step is None or (left := self._matching.rough.whole(step.graph)) > most:
            return None
        key = self.print(step.graph)
        if key in seen:
            return None
        seen.add(key)
        return step, left

    def print(self, graph: Graph) -> int:
        """What tells graphs apart: operators and where they take their inputs from; of constants the type."""
        return hash(tuple([self._print_of(o) for o in graph.outputs]))

    def print_after(self, graph: Graph, new: Mapping[Term, Term]) -> int:
        """The print that a graph has with terms replaced, which need not be made for that.

        Constants are made otherwise then (see `narrowed`), but of the same type.
        """
        prints = {old: self._print_of(term) for old, term in new.items()}
        renewed = prints.keys()
        for term in graph.runs:
            if not renewed.isdisjoint(term.inputs) and term not in prints:
                below = [prints[i] if i in prints else self._print_of(i) for i in term.inputs]
                prints[term] = _print_over(term, below)
        return hash(tuple([prints[o] if o in prints else self._print_of(o) for o in graph.outputs]))

    def _print_of(self, root: Term) -> int:
        """The same of a term."""
        known = self._prints
        if root not in known:
            if root.constant or root.is_variable:
                return _leaf_print(root)
            for term in running(root, known=known):
                known[term] = _print_over(term, [known[i] if i in known else _leaf_print(i) for i in term.inputs])
        return known[root]


def _print_over(term: Term, below: list[int]) -> int:
    """The print of a term whose inputs have these."""
    if isinstance(term.operator, Declared) and term.operator.commutative:
        below.sort()
    # The name as well: the hashes of operators without attributes are all equal.
    return hash((term.operator.name, term.operator, *below))


def strategy(explore: Callable[[Outcome, Space, Cost, Limits], None]) -> Strategy:
    """A strategy, from what fills in an outcome that holds the start. Interrupted, it gives what there is by then."""

    @wraps(explore)
    def search(
        graph: Graph, matching: Matching, cost: Cost, limits: Limits, tried: Sequence[Replaced] | None = None
    ) -> Outcome:
        start = Found(graph, cost.cost(graph), (), measured=True)
        outcome, space = Outcome(start, [start], 1), Space(graph, matching, cost, tried)
        try:
            explore(outcome, space, cost, limits)
        except KeyboardInterrupt:
            outcome.reason = INTERRUPTED
        outcome.seen, outcome.candidates = space.seen, space.candidates
        return outcome

    return search


def _leaf_print(term: Term) -> int:
    return hash(term.type) if term.constant else hash(term)


def _changed(graph: Graph, old: Container[Term], near: float) -> list[Term]:
    """The running terms of a graph that are not `old`, as far as rewrites see that they are not."""
    distance: dict[Term, int] = {}
    for term in running(*graph.outputs, known=old):
        below = [distance[i] for i in term.inputs if i in distance]
        distance[term] = 1 + min(below) if below else 0
    return [term for term, number in distance.items() if number <= near]


def applied(graph: Graph, new: Mapping[Term, Term], narrow: dict[Term, Term] | None = None) -> Graph:
    """The graph with terms replaced, everything above them made anew; `narrow` is what `narrowed` remembers."""
    done = dict(new)
    renewed = done.keys()
    with assuming():  # both sides are of one type, so what held of symbolic sizes above the place still does
        for term in graph.runs:
            if not renewed.isdisjoint(term.inputs) and term not in done:
                done[term] = made_over(term, tuple([done.get(i, i) for i in term.inputs]))
        return Graph(graph.inputs, narrowed(tuple(done.get(o, o) for o in graph.outputs), narrow))
