"""Rules of two outputs: what is cut from one result replaces two that are computed apart.

An equation with a variable on one side only, `slice(f(x, concat(y, z))) = f(x, y)`, is of no use alone, since its right
side does not say what z is. Two of them that cut the same term are one rule from right to left, if together they use
all that the term does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from superopt.enumerate.generalize import open_conditions
from superopt.errors import RuleError
from superopt.rules.naming import canonical
from superopt.rules.rule import Rule
from superopt.term import Term, variables


def of_two_outputs(rules: Sequence[Rule]) -> Iterator[Rule]:
    """The rules of two outputs that rules of one make; none of them is proved."""
    whole: dict[Term, list[Rule]] = {}
    for rule in rules:
        if _cuts(rule):
            whole.setdefault(rule.source[0].inputs[0], []).append(rule)
    for term, cuts in whole.items():
        for i, one in enumerate(cuts):
            for other in cuts[i + 1 :]:
                sources, targets = (one.target[0], other.target[0]), (one.source[0], other.source[0])
                if sources[0] is not sources[1] and set(variables(*sources)) == set(variables(term)):
                    yield from _rule(sources, targets)


def _cuts(rule: Rule) -> bool:
    """Whether the source takes a part of one term, and the target computes it from fewer variables."""
    (source,), (target,) = rule.source, rule.target
    one = len(source.inputs) == 1 and not source.inputs[0].is_variable
    return one and not target.is_variable and set(variables(target)) < set(variables(source))


def _rule(sources: tuple[Term, Term], targets: tuple[Term, Term]) -> Iterator[Rule]:
    try:
        a, b, c, d = canonical((*sources, *targets))
        yield Rule("candidate", (a, b), (c, d), open_conditions((a, b), (c, d)))
    except RuleError:
        return
