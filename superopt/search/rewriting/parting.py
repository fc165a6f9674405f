"""What is joined, below an operator that is linear in it, where one of the parts meets something that this gets past:
images that are resized, joined and convolved.

A rule that takes the operator apart leaves a sum more to compute, and only what the next rewrite makes of a part saves
anything; where many are joined, each of them takes rewrites of its own until it stands alone. None of these gains by
itself, so a search would lose its patience among whatever else leaves all as it is. So each part is looked at, and
where something is saved these parts are taken off at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import reduce
from itertools import groupby
from typing import TypeAlias

from superopt.demands import assuming
from superopt.errors import SuperoptError
from superopt.operators.layout import Concat
from superopt.operators.pointwise import Add
from superopt.rules.rule import Rule
from superopt.search.rewriting.narrow import narrowed
from superopt.search.rewriting.rewrites import ByRule, Rewrite
from superopt.term import Operator, Term, made_over, make

MOST = 8
"""Of more parts only a search tells."""

Parting: TypeAlias = Mapping[str, Sequence[Rewrite]]
"""By the name of an operator, the rules that say that it may be applied to the parts of what is joined, and the results
added up.
"""


def parting(rewrites: Sequence[Rewrite]) -> Parting:
    """The operators that may be taken apart so, by what rewrites say."""
    found: dict[str, list[Rewrite]] = {}
    for rewrite in rewrites:
        if isinstance(rewrite, ByRule) and len(rewrite.heads) == 1 and rewrite.depth == 2 and _says_so(rewrite.rule):
            found.setdefault(rewrite.heads[0], []).append(rewrite)
    return found


def _says_so(rule: Rule) -> bool:
    """Whether a rule is `f(concat(x, y), z) = f(x, z') + f(y, z'')`, where z' and z'' are made of z."""
    (source,), (target,) = rule.source, rule.target
    if len(source.inputs) != 2 or not isinstance(source.inputs[0].operator, Concat) or not source.inputs[1].is_variable:
        return False
    joined = source.inputs[0].inputs
    if not isinstance(target.operator, Add) or len({*joined, source.inputs[1]}) != 3:
        return False
    parts = [t.inputs[0] for t in target.inputs if t.operator.name == source.operator.name]
    return all(x.is_variable for x in joined) and tuple(parts) == joined


def taken_apart(term: Term, saved: Callable[[Term], float], rules: Parting) -> Iterator[tuple[Rewrite, Term, float]]:
    """An operator with those parts taken off of which it saves something then, and what; neighbours of which it saves
    nothing stay together.
    """
    if term.operator.name not in rules or term.constant:
        return
    (joined, other), joint = term.inputs, term.inputs[0].operator
    if not isinstance(joint, Concat) or not other.constant or len(parts := _parts_of(joined, joint)) > MOST:
        return
    with suppress(SuperoptError), assuming() as conditions:  # that windows fit at symbolic sizes may be assumed
        for rule in rules[term.operator.name]:
            if (alone := _of_each(rule, term.operator, parts, joint, other)) is None:
                continue
            saves = [saved(t) for t in alone]
            sums = _of_each(rule, term.operator, _together(parts, saves, joint), joint, other) if any(saves) else None
            if sums is not None and all(c.relation == "<=" for c in conditions):
                yield rule, reduce(lambda total, t: Add()(t, total), reversed(sums)), sum(saves)
            return


def _parts_of(term: Term, joint: Concat) -> list[Term]:
    """What is joined by a term and those below it that join along the same axis, in order; of too many not all."""
    parts, stack = list[Term](), [term]
    while stack and len(parts) <= MOST:
        part = stack.pop()
        if part.operator == joint:
            stack += reversed(part.inputs)
        else:
            parts.append(part)
    return parts


def _together(parts: Sequence[Term], saves: Sequence[float], joint: Concat) -> list[Term]:
    """Parts, of which those that follow each other and save nothing are joined again."""
    groups: list[Term] = []
    for stay, several in groupby(zip(parts, saves, strict=True), key=lambda part: not part[1]):
        each = [part for part, _ in several]
        groups += [reduce(joint, each)] if stay else each
    return groups


def _of_each(rule: Rewrite, op: Operator, parts: Sequence[Term], joint: Concat, other: Term) -> list[Term] | None:
    """What a rule makes of an operator for each of the parts; None where it does not fit."""
    if len(parts) == 1:
        return [make(op, (parts[0], other))]
    first, rest = parts[0], reduce(joint, parts[1:])
    made = next(rule.at((make(op, (joint(first, rest), other)),)), None)
    if made is None:
        return None
    # Parts of repeated weights are repeated: so more is seen to be saved.
    one, left = (made_over(t, (t.inputs[0], *narrowed(t.inputs[1:]))) for t in made[0].inputs)
    others = _of_each(rule, left.operator, parts[1:], joint, left.inputs[1])
    return None if others is None else [one, *others]
