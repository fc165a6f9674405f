"""Whether rules derive an equation: the directed steps that lead from one side to the other.

A step rewrites terms anywhere below the outputs. Steps are tried in breadth, so the fewest are found; what has more
operators than is allowed is not gone through, since a search for cheaper graphs would not either.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable

from superopt.rules.rule import Rule
from superopt.rules.steps import State, Step, Steps, Target
from superopt.rules.work import all_kinds, kinds_of_sizes, operators, work
from superopt.term import Fact, Term

STATES = 3000
"""How many graphs are looked at, at most, for one derivation."""


class Rules(Steps):
    """Rules to derive with. Of some it may be asked that they are `final`, see `steps`."""

    def __init__(self, rules: Iterable[Rule], final: Callable[[Rule], bool] = lambda _: False) -> None:
        self._is_final = final
        self._final: set[int] = set()
        super().__init__(rules)

    def add(self, rule: Rule) -> None:
        """One rule more, which may be final."""
        super().add(rule)
        if self._is_final(rule):
            self._final.add(id(rule))

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
        given, wanted = self.key(source), self.key(target)
        if given == wanted:
            return []
        if not most:
            return None
        kinds = kinds_of_sizes(source) or all_kinds(source)
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
                    key = self.key(step.result)
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
