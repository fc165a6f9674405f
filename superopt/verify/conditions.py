"""Conditions under which a rule holds: learned from where small examples agree and differ, then proved, weakest first.

What the target asks of the sizes comes first, since without it there is nothing to compare. Then equal attributes of
two operators of one kind; equalities of two sizes or attributes, a value of one, one that divides another; what must be
known of the elements of a variable; and pairs of these. Of those that no example contradicts, the weakest that is
proved is taken: the one that most of the examples on which the sides agree meet.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from superopt.demands import assuming
from superopt.dim import Condition, Dim, equal, symbol
from superopt.errors import RuleError, ShapeError
from superopt.operators.declared import Declared
from superopt.operators.instances import sized_instances
from superopt.operators.solved_sizes import unify
from superopt.operators.symbolic import all_symbols, conditions, defaults, positive_symbols, resize
from superopt.rules.rule import Rule
from superopt.substitution import substitute_condition
from superopt.term import FACTS, Fact, size_symbols, subterms, variables
from superopt.verify.check import UNCOMPUTABLE, attempt, differs
from superopt.verify.prove import RESOURCES, Proved

SAMPLED = 120
"""On how many sizes both sides are compared to learn from."""

ATOMS = 150
"""How many relations, at most, are looked at, alone and in pairs."""

ATTEMPTS = 80
"""How many conditions are tried, at most, where nothing else is said."""

RESOURCES_OF_A_GUESS = RESOURCES // 10
"""The solver's, for a proof under more than the target asks for: most guesses are wrong, and those that are not take
little.
"""

Flags: TypeAlias = NDArray[np.bool_]

Added: TypeAlias = "tuple[Condition | Fact, ...]"


@dataclass(frozen=True)
class Learned:
    """A rule that holds where a further condition does, which it states: equal sizes have one name in it."""

    rule: Rule
    condition: Added
    """In the names of the rule that was given."""
    demanded: bool
    """The target is ill formed wherever the condition does not hold: so no sizes show the rule wrong."""


def learn(rule: Rule, attempts: int = ATTEMPTS) -> Learned | None:
    """The rule under the weakest further condition found that proves it, and the laws that do; None where none of so
    many does.
    """
    try:
        for number, added in enumerate(itertools.islice(_weakest_first(rule), attempts)):
            try:
                tried = with_conditions(rule, added)
            except (RuleError, ShapeError):
                continue
            resources = RESOURCES_OF_A_GUESS if number else RESOURCES
            if isinstance(attempt(tried, resources=resources), Proved):
                return _weakened(rule, added, resources)
    except UNCOMPUTABLE:
        return None
    return None


def suppose(rule: Rule, resources: int = RESOURCES) -> Rule | None:
    """A rule under facts on its variables that prove it, and the laws that do; None where no facts do.

    It is about operators that are not defined everywhere, or drops variables. None of the facts can be done without.
    """
    partial = any(isinstance(op := t.operator, Declared) and op.defined != "true" for t in subterms(*rule.source))
    if not partial and set(rule.given) <= set(variables(*rule.target)):
        return None
    facts = [Fact(kind, v) for kind in FACTS for v in rule.given]
    proved = _proved_under(rule, tuple(facts), resources)
    for fact in facts:
        if proved is not None:
            fewer = tuple(f for f in proved.facts if f is not fact)
            proved = _proved_under(rule, fewer, resources) or proved
    return proved


def _proved_under(rule: Rule, facts: tuple[Fact, ...], resources: int) -> Rule | None:
    tried = replace(rule, facts=facts)
    verdict = attempt(tried, resources=resources)
    return replace(tried, by=verdict.laws) if isinstance(verdict, Proved) else None


def _weakened(rule: Rule, added: Added, resources: int) -> Learned:
    """What was learned, without the parts that the proof does without; what the target asks for it cannot."""
    demanded = {str(c) for c in asked(rule) if c.relation == "="}
    for part in reversed(added):
        fewer = tuple(a for a in added if a is not part)
        tried = with_conditions(rule, fewer)
        if str(part) not in demanded and isinstance(attempt(tried, resources=resources), Proved):
            added = fewer
    tried = with_conditions(rule, added)
    verdict = attempt(tried, resources=resources)
    assert isinstance(verdict, Proved)
    return Learned(replace(tried, by=verdict.laws), added, demanded.issuperset(map(str, added)))


def with_conditions(rule: Rule, added: Added) -> Rule:
    """The rule under further conditions: equalities are put in where one size can be told by others.

    Raises `RuleError` or `ShapeError` where that leaves no rule.
    """
    count, names = len(rule.source), all_symbols(*rule.source)
    # What the source asks may say more of a size where others are equal: as many groups as make h of h are one.
    asked_for = [*conditions(*rule.source), *rule.conditions, *(c for c in added if isinstance(c, Condition))]
    values, rest = unify(asked_for, names, positive_symbols(*rule.source))
    with assuming():
        roots = resize((*rule.source, *rule.target), values)
    given = {v.label: v for v in variables(*roots)}
    facts = tuple(Fact(f.kind, given[f.of.label]) for f in (*rule.facts, *(f for f in added if isinstance(f, Fact))))
    stated = {c.key for c in conditions(*roots[:count])}
    conditions_left = tuple(c for c in rest if c.key not in stated)
    return replace(rule, source=roots[:count], target=roots[count:], conditions=conditions_left, facts=facts)


def asked(rule: Rule) -> list[Condition]:
    """What the target asks of the sizes beyond what the source states, solved for single sizes where it can be.

    Raises `ShapeError` where that can never hold.
    """
    names, positive = all_symbols(*rule.source), positive_symbols(*rule.source)
    known, _ = unify([*conditions(*rule.source), *rule.conditions], names, positive)
    shapes = [
        pair for s, t in zip(rule.source, rule.target, strict=True) for pair in zip(s.shape, t.shape, strict=True)
    ]
    demands = [*conditions(*rule.target), *(c for a, b in shapes if isinstance(c := equal(a, b), Condition))]
    stated = {c.key for c in [*conditions(*rule.source), *rule.conditions]}
    left = [substitute_condition(c, known) for c in demands if c.key not in stated]
    if False in left:
        raise ShapeError("the target asks for what the source rules out")
    values, rest = unify([c for c in left if isinstance(c, Condition)], names, positive)
    return [*(Condition("=", symbol(n), d) for n, d in values.items()), *rest]


def _weakest_first(rule: Rule) -> Iterator[Added]:
    base: Added = ()
    try:
        for _ in range(3):  # what is put in may tell more of what is asked
            base = (*base, *(c for c in asked(with_conditions(rule, base)) if c.relation == "="))
        special = with_conditions(rule, base)
        demands = asked(special)
    except (ShapeError, RuleError):
        return
    base = (*base, *(c for c in demands if c.relation == "divides"))
    yield base
    if any(c.relation == "<=" for c in demands):
        base = (*base, *(c for c in demands if c.relation == "<="))
        yield base
    special = with_conditions(rule, base)
    yield from ((*base, *same) for same in _same_attributes(special))
    atoms = list(itertools.islice(_atoms(special), ATOMS))
    met, agrees = _examined(special, atoms)
    if agrees.all():  # no example shows where the sides differ; usual attributes are the best guess
        yield (*base, *_usual_attributes(special))
    facts = [Fact(kind, v) for kind in FACTS for v in special.given]
    further = _consistent(atoms, met, agrees, 1)
    further += itertools.combinations(facts, 1)
    further += _consistent(atoms, met, agrees, 2)
    further += itertools.combinations(facts, 2)
    yield from ((*base, *added) for added in further)


def _same_attributes(rule: Rule) -> Iterator[Added]:
    """That two operators of one kind on the left have the same attributes; what of it is not needed is dropped."""
    kinds: dict[tuple[object, ...], dict[tuple[Dim, ...], None]] = {}
    for t in subterms(*rule.source):
        op = t.operator
        if isinstance(op, Declared) and op.sizes():
            kinds.setdefault((op.name, *op.structure(), len(op.sizes())), {})[op.sizes()] = None
    for found in kinds.values():
        for ours, theirs in itertools.combinations(found, 2):
            truths = [equal(a, b) for a, b in zip(ours, theirs, strict=True)]
            if False not in truths:
                yield tuple(t for t in truths if isinstance(t, Condition))


def _usual_attributes(rule: Rule) -> Added:
    """That what stands for an attribute is its default; what of it is not needed is dropped."""
    return tuple(Condition("=", symbol(n), value) for n, value in defaults((*rule.source, *rule.target)).items())


def _atoms(rule: Rule) -> Iterator[Condition]:
    """Equal ratios of what divides; relations between two sizes of variables, or two attributes; values of one."""
    divisions = [(c.left, c.right) for c in conditions(*rule.source) if c.relation == "divides"]
    for (a, b), (c, d) in itertools.combinations(divisions, 2):
        ratios = equal(b * c, d * a)
        yield from [ratios] if isinstance(ratios, Condition) else []
    roots = (*rule.source, *rule.target)
    fixed, _ = unify([*conditions(*roots), *rule.conditions], all_symbols(*rule.source), positive_symbols(*roots))
    free = [n for n in all_symbols(*rule.source) if n not in fixed]
    dims, usual = size_symbols(*roots), defaults(roots)
    for name in free:
        values = {1} if name in dims else {usual.get(name, 1), 0}
        yield from (Condition("=", symbol(name), value) for value in sorted(values))
    alike = [pair for pair in itertools.combinations(free, 2) if (pair[0] in dims) == (pair[1] in dims)]
    for one, other in alike:
        yield Condition("=", symbol(one), symbol(other))
    for one, other in [*alike, *((b, a) for a, b in alike)]:
        yield Condition("divides", symbol(one), symbol(other))


def _examined(rule: Rule, atoms: Sequence[Condition]) -> tuple[Flags, Flags]:
    """Of each atom on which examples it holds, and on which examples both sides agree."""
    count, roots = len(rule.source), (*rule.source, *rule.target)
    met, agrees = [], []
    for sizes, example in sized_instances(roots, rule.conditions, SAMPLED, seed=0, largest=3, tries=20 * SAMPLED):
        met.append([substitute_condition(a, sizes) is True for a in atoms])
        agrees.append(differs(example[:count], example[count:], len(met), rule.facts) is None)
    return np.asarray(met, bool).reshape(len(met), len(atoms)).T, np.asarray(agrees, bool)


def _consistent(atoms: Sequence[Condition], met: Flags, agrees: Flags, together: int) -> list[Added]:
    """Atoms that together no example contradicts: equalities first, then those that most agreeing examples meet."""
    found: list[tuple[int, int, Added]] = []
    for some in itertools.combinations(range(len(met)), together):
        holds = np.logical_and.reduce([met[i] for i in some])
        if not (holds & ~agrees).any():
            divisions = sum(atoms[i].relation == "divides" for i in some)
            found.append((divisions, -int((holds & agrees).sum()), tuple(atoms[i] for i in some)))
    return [added for *_, added in sorted(found, key=lambda f: f[:2])]
