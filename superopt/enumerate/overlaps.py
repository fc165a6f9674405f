"""What two rewrites come to where the first leads uphill: overlaps of rules, as critical pairs (Knuth and Bendix 1970).

A search goes through little more work than it has, so it does not take a step that costs much, whatever the next one
saves. A product of low rank, (x·a)·b, is x·(a·b), which is dearer; but beside x·w that makes x·(w + a·b) of both. So
where the result of one rule and the source of another are parts of one graph, and that graph is a peak between what
comes before and after it, the two are stated as one. Larger graphs than were enumerated are rewritten so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import NamedTuple

from superopt.demands import assuming
from superopt.dim import Condition, equal, symbol, symbol_name
from superopt.enumerate.directed import Pair, directions
from superopt.enumerate.generality import LADDER
from superopt.enumerate.generalize import generalized, open_conditions, tidied
from superopt.enumerate.grow import Progress
from superopt.enumerate.typed import typed
from superopt.enumerate.unification import Equal, Substitution, applied, resolved, unified
from superopt.errors import RuleError, ShapeError, Undecided
from superopt.operators.declared import Declared
from superopt.operators.layout import Expand
from superopt.operators.solved_sizes import unify
from superopt.operators.symbolic import all_symbols, positive_symbols, resize
from superopt.rules.derive import Rules
from superopt.rules.format import print_rule
from superopt.rules.match import commuted
from superopt.rules.naming import canonical
from superopt.rules.rule import Rule, of_any_rank
from superopt.rules.work import kinds_of_sizes, operators, work
from superopt.term import Term, replace_all, subterms, variable, variables

Changed = tuple[Term, dict[Term, Term]]
"""A term, and what takes the place of parts of it."""


class Sides(NamedTuple):
    """Both sides of a rule, and whether it holds under conditions: that sizes of the right are legal."""

    left: Term
    right: Term
    open: bool


class Peak(NamedTuple):
    """Where two rewrites meet: what the first begins with, what both have in common, and what the second ends with;
    what has to be equal for that; and whether either holds under conditions.
    """

    low: Changed
    top: Term
    end: Changed
    same: Substitution
    sizes: Equal
    open: bool


UPHILL = 1.25
"""How much more work a peak has than what comes before it."""


def overlaps(
    rules: Sequence[Rule],
    others: Iterable[Pair],
    beside: Sequence[Rule],
    most: int,
    progress: Progress | None = None,
) -> list[Rule]:
    """The rules of at most so many operators a side that two rewrites are together where the first, a rule, leads
    uphill, and the second, a rule or another equation, saves more. At least one is not from `beside`. None is proved.
    """
    known = Rules(rules)
    further = {rule for pair in others for rule in _stated(pair) if known.covering(rule) is None}
    rise = [[_renamed(r, "a") for r in part if _is_plain(r) and _may_rise(r)] for part in (rules, beside)]
    fall = [
        [_renamed(r, "b") for r in part if _is_plain(r) and _may_fall(r)]
        for part in ([*rules, *sorted(further, key=print_rule)], beside)
    ]
    pairs = [*product(rise[0], fall[0]), *product(rise[0], fall[1]), *product(rise[1], fall[0])]
    found: dict[tuple[Term, ...], Rule] = {}
    for i, (first, second) in enumerate(pairs):
        if progress and i % 64 == 0:
            progress("overlap", i, len(pairs))
        for rule in _together(first, second, most):
            found.setdefault(tuple(map(commuted, (*rule.source, *rule.target))), rule)
    return list(found.values())


def _stated(pair: Pair) -> Iterator[Rule]:
    """An equation as a rule from what takes more work at the sizes found, if one side does."""
    for source, target in directions(*pair):
        (more,), (less,) = work((source,), [{}]), work((target,), [{}])
        rule = generalized(source, target, LADDER[0]) if less < more else None
        if rule is not None:
            yield rule


def _is_plain(rule: Rule) -> bool:
    """Whether it is of one output, and holds of all tensors of its ranks, but for sizes that are not legal."""
    asks = rule.facts or any(c.relation != "<=" for c in rule.conditions)
    return len(rule.source) == 1 and not (asks or of_any_rank(*subterms(*rule.source)))


def _may_rise(rule: Rule) -> bool:
    kinds = kinds_of_sizes(rule.source)
    return any(b > UPHILL * a for a, b in zip(work(rule.source, kinds), work(rule.target, kinds), strict=True))


def _may_fall(rule: Rule) -> bool:
    kinds = kinds_of_sizes(rule.source)
    return any(b < a for a, b in zip(work(rule.source, kinds), work(rule.target, kinds), strict=True))


def _renamed(rule: Rule, prefix: str) -> Sides:
    """Both sides of a rule with variables and sizes that no rule of another prefix has."""
    roots = (*rule.source, *rule.target)
    with assuming():  # what was well formed stays so
        roots = resize(roots, {name: symbol(f"{prefix}_{name}") for name in all_symbols(*roots)})
        left, right = replace_all(roots, {v: variable(f"{prefix}_{v.label}", v.shape) for v in variables(*roots)})
    return Sides(left, right, bool(rule.conditions))


def _together(first: Sides, second: Sides, most: int) -> Iterator[Rule]:
    """What two rules are together, where the target of the first and the source of the second are one, or one of them
    is a part of the other.
    """
    (low, top, _), (source, target, _) = first, second
    opened = first.open or second.open
    for part in _alike(source, top):
        for same, sizes in unified(part, top, {}, []):
            yield from _rule(Peak((source, {part: low}), source, (target, {}), same, sizes, opened), most)
    for part in _alike(top, source):
        for same, sizes in unified(part, source, {}, []) if part is not top else ():
            yield from _rule(Peak((low, {}), top, (top, {part: target}), same, sizes, opened), most)


def _alike(term: Term, root: Term) -> list[Term]:
    """The parts of a term that have the same operator as another."""
    return [t for t in subterms(term) if not t.is_variable and type(t.operator) is type(root.operator)]


def _rule(peak: Peak, most: int) -> Iterator[Rule]:
    """A rule of at most so many operators from what is before a peak to what is after it, if it is one."""
    try:
        with assuming():
            (first,), (last,) = (replace_all((term,), changes) for term, changes in (peak.low, peak.end))
            if max(_count(first, peak.same), _count(last, peak.same)) > most:
                return
            start, over, stop = typed(*_substituted((first, peak.top, last), peak.same, peak.sizes))
            start, over, stop = canonical((start, over, tidied(stop)))
        if _is_bound(start) and max(map(operators, ((start,), (stop,)))) <= most and _is_peak(start, over, stop):
            yield Rule("candidate", (start,), (stop,), open_conditions((start,), (stop,), peak.open))
    except (ShapeError, Undecided, RuleError):
        return


def _count(term: Term, same: Substitution) -> int:
    """How many operators a term has at least, with what stands for its variables: sizes are left out of account."""
    found: set[object] = set()

    def key(t: Term) -> object:
        t = resolved(t, same)
        if not isinstance(t.operator, Declared):
            return t
        known = (t.operator.name, t.operator.structure(), *map(key, t.inputs))
        if not isinstance(t.operator, Expand):
            found.add(known)
        return known

    key(term)
    return len(found)


def _substituted(terms: tuple[Term, ...], same: Substitution, sizes: Equal) -> tuple[Term, ...]:
    """Terms with what stands for their variables, at sizes that are equal. Raises `ShapeError` where they cannot be."""
    roots = (*terms, *same, *same.values())
    asked = [equal(a, b) for a, b in sizes]
    if False in asked:
        raise ShapeError("sizes differ")
    kept = all_symbols(*(v for v in variables(*terms) if v not in same))
    values, _ = unify([c for c in asked if isinstance(c, Condition)], kept, positive_symbols(*roots))
    sized = resize(roots, values)
    new, count = sized[len(terms) :], len(same)
    return applied(sized[: len(terms)], dict(zip(new[:count], new[count:], strict=True)))


def _is_bound(source: Term) -> bool:
    """Whether each size is somewhere all of a dimension or attribute: matching tells no size from a formula alone."""
    dims = [d for v in variables(source) for d in v.shape]
    dims += [d for t in subterms(source) if isinstance(t.operator, Declared) for d in t.operator.sizes()]
    return set(all_symbols(source)) <= {symbol_name(d) for d in dims}


def _is_peak(low: Term, peak: Term, end: Term) -> bool:
    declared = [t.operator for t in subterms(low) if isinstance(t.operator, Declared)]
    attributes = [name for op in declared for d in op.sizes() if (name := symbol_name(d)) is not None]
    # Pads, strides and groups are mostly small beside the sizes of tensors.
    kinds = kinds_of_sizes((low,)) + kinds_of_sizes((low,), ones=attributes)
    before, between, after = (work((term,), kinds) for term in (low, peak, end))
    return any(b > UPHILL * a > UPHILL * c for a, b, c in zip(before, between, after, strict=True))
