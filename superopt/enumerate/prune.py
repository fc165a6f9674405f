"""Which proved rules are written: no instance of another, and none that three steps of others replay."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from superopt.enumerate.grow import Progress
from superopt.operators.conv import Conv
from superopt.operators.declared import Declared
from superopt.operators.layout import Expand
from superopt.operators.symbolic import all_symbols
from superopt.rules.derive import Rules
from superopt.rules.format import print_rule
from superopt.rules.idle import enlarges
from superopt.rules.match import instance_of
from superopt.rules.rule import Rule
from superopt.rules.steps import State
from superopt.rules.work import operators
from superopt.term import Fact, Term, subterms


def prune_instances(rules: list[Rule], progress: Progress | None = None) -> list[Rule]:
    """Drop every rule that is an instance of another that is kept; of two that are of each other, the later."""
    kept: dict[tuple[str, ...], list[_Named]] = defaultdict(list)
    ordered = sorted(rules, key=_specificity)
    for i, rule in enumerate(ordered):
        if progress and i % 16 == 0:
            progress("prune instances", i, len(rules))
        alike, mine = kept[tuple(t.operator.name for t in rule.source)], _Named.of(rule)
        if not any(mine.may_be(general) and instance_of(rule, general.rule) for general in alike):
            # A special rule may come first: what it uses twice counts once.
            alike[:] = [*(k for k in alike if not (k.may_be(mine) and instance_of(k.rule, rule))), mine]
    left = {named.rule for alike in kept.values() for named in alike}
    return [rule for rule in dict.fromkeys(ordered) if rule in left]


@dataclass(frozen=True)
class _Named:
    """A rule, and the operators of each of its sides but broadcasts: an instance has all of them."""

    rule: Rule
    source: frozenset[str]
    target: frozenset[str]

    @classmethod
    def of(cls, rule: Rule) -> _Named:
        return cls(rule, frozenset(_operators(rule.source)), frozenset(_operators(rule.target)))

    def may_be(self, general: _Named) -> bool:
        if not (self.source >= general.source and self.target >= general.target):
            return False
        sides = ((general.rule.source, self.rule.source), (general.rule.target, self.rule.target))
        return all(map(_fits, *sides[0])) and all(map(_fits, *sides[1]))


def _fits(general: Term, special: Term) -> bool:
    """Whether a term may be an instance of another, by the operators alone: most are not, and this takes a tenth of
    the time of looking for what variables would be.
    """
    if general.is_variable or isinstance(general.operator, Expand):
        return True
    if general.operator.name != special.operator.name or len(general.inputs) != len(special.inputs):
        return False
    if all(map(_fits, general.inputs, special.inputs)):
        return True
    swaps = isinstance(general.operator, Declared) and general.operator.commutative
    return swaps and all(map(_fits, general.inputs, special.inputs[::-1]))


MUCH = 1.1
"""How much more work than either side a replay may pass through: a search goes through little more (its α is 1.15, and
a convolution of one ninth of another's work takes more than a ninth of its time).
"""


STEPS = 3
"""A rule that others replay in so many directed steps is left out: what takes more a search would not find."""


SMALL = 2
"""Rules of so many operators a side, or one besides constants, are left out where one step replays them, and no more:
they are what the steps of larger ones are made of, so what follows from larger ones takes few.
"""


POINTWISE_STEPS = 1
"""Where more steps are replayed, point-wise equations that follow from others are not looked at: they are by far the
most, and hardest to replay.
"""


def macros(
    rules: list[Rule], beside: Sequence[Rule] = (), progress: Progress | None = None, steps: int = STEPS
) -> list[Rule]:
    """Without rules that those kept, and those `beside`, replay in so many directed steps, through nothing much
    costlier: a search takes these steps itself. With no steps, without instances of those `beside` alone.
    """
    kept: list[Rule] = []
    known, given = replaying(beside), Rules(beside)
    for i, rule in enumerate(sorted(rules, key=_specificity)):
        if progress and i % 16 == 0:
            progress("replay", i, len(rules))
        if not steps and given.covering(rule):
            continue
        most = steps_for(rule.source, rule.target, steps)
        if not replayed(known, rule.source, rule.target, most, rule.facts):
            kept.append(rule)
            known.add(rule)
    return kept


def replaying(rules: Iterable[Rule]) -> Rules:
    """Rules to replay others with, see `replayed`."""
    return Rules(rules, final=enlarges)


def replayed(known: Rules, source: State, target: State, steps: int, facts: tuple[Fact, ...] = ()) -> bool:
    """Whether rules replay an equation in so many directed steps.

    A search takes no step that only enlarges kernels, so what merges convolutions is not replayed by way of one. That
    other equations are, keeps those out that enlarge kernels as they go, and gain nothing.
    """
    merges = _convolutions(target) < _convolutions(source)
    return known.steps(source, target, steps, much=MUCH, facts=facts, beyond_final=not merges) is not None


def _convolutions(state: State) -> int:
    return sum(isinstance(t.operator, Conv) for t in subterms(*state))


def steps_for(source: State, target: State, steps: int) -> int:
    """In how many directed steps others may replay an equation that is left out."""
    made = max(_made(source), _made(target))
    return min(steps, 1) if made <= SMALL or max(operators(source), operators(target)) <= 1 else steps


def _made(state: State) -> int:
    return sum(not (t.is_variable or isinstance(t.operator, Expand)) for t in subterms(*state))


def _specificity(rule: Rule) -> tuple[int, int, int, str]:
    """Small and with many variables and symbols first; the text decides between equals."""
    sides = (*rule.source, *rule.target)
    operators = sum(not t.is_variable for t in subterms(*sides))
    return (operators, -len(rule.given), -len(all_symbols(*rule.source)), print_rule(rule))


def named(rules: list[Rule], beside: Sequence[Rule] = ()) -> list[Rule]:
    """Rules called by the operators of both sides, in order of name; numbered where that is not enough, after those
    `beside`.
    """
    bases = ["-".join([*_words(r.source), "to", *_words(r.target)]) for r in rules]
    totals, used = Counter(bases), Counter[str]()
    for rule in beside:
        base, _, number = rule.name.rpartition("-")
        taken = (base, int(number)) if number.isdigit() else (rule.name, 1)
        used[taken[0]] = max(used[taken[0]], taken[1])
    result = []
    for rule, base in zip(rules, bases, strict=True):
        used[base] += 1
        alone = totals[base] == used[base] == 1
        result.append(replace(rule, name=base if alone else f"{base}-{used[base]}"))
    return sorted(result, key=lambda r: r.name)


def _words(side: tuple[Term, ...]) -> list[str]:
    return _operators(side)[::-1] or ["itself"]


def _operators(side: tuple[Term, ...]) -> list[str]:
    return [t.operator.name for t in subterms(*side) if not t.is_variable and not isinstance(t.operator, Expand)]
