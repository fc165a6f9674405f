"""From an equation found at one size to equations over symbols: the most general typing that makes it well formed.

Every size becomes a symbol of its own; what the operators ask of the sizes on both sides, and that both sides have one
shape, is solved for them (unification). So an equation found where two widths happened to be equal is stated for any
two widths, unless one side needs them equal; then the variables' shapes say so.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from superopt.bounds import nonnegative
from superopt.demands import assuming
from superopt.dim import Condition, Dim, Expr, Floor, Shape, equal, product, symbol
from superopt.enumerate.generality import CONSTANTS, Generality, shared_places
from superopt.errors import RuleError, ShapeError, Undecided
from superopt.operators.declared import Declared
from superopt.operators.layout import Concat, Expand, Reshape
from superopt.operators.padding import Pad
from superopt.operators.picks import Slice
from superopt.operators.solved_sizes import unify
from superopt.operators.symbolic import all_symbols, conditions, positive_symbols, resize
from superopt.relations import are_equal
from superopt.rules.match import commuted, rewrites
from superopt.rules.naming import canonical
from superopt.rules.rule import Rule
from superopt.substitution import substitute
from superopt.term import Term, Variable, made_over, make, replace_all, size_symbols, subterms, variable, variables


def generalized(source: Term, target: Term, generality: Generality) -> Rule | None:
    """The rule over symbols that has the found equation as an instance; None where there is none of this generality."""
    try:
        with assuming():
            roots = _with_symbols((source, target), generality)
    except (ShapeError, Undecided):
        return None
    rule = _stated(roots, generality)
    if _has_quotients(roots):
        narrower = _stated(roots, generality, by_numerators=True)
        return narrower if narrower is not None and _gives(narrower, source, target) else rule
    return rule


def _stated(roots: tuple[Term, ...], generality: Generality, by_numerators: bool = False) -> Rule | None:
    """The rule from one term to another with their sizes solved for, see `typed`; None where there is none."""
    try:
        with assuming():
            left, right = typed(*roots, by_numerators=by_numerators)
            left, right = canonical((left, tidied(right)))
        asked = open_conditions((left,), (right,), legal=generality.attributes == "rings")
        return Rule("candidate", (left,), (right,), asked)
    except (ShapeError, Undecided, RuleError):
        return None


def _has_quotients(roots: tuple[Term, ...]) -> bool:
    """Whether windows move by a symbol, so that how many there are is rounded down."""
    dims = (d for t in subterms(*roots) for d in t.shape if isinstance(d, Expr))
    return any(isinstance(atom, Floor) for d in dims for monomial, _ in d.terms for atom in monomial)


def _gives(rule: Rule, source: Term, target: Term) -> bool:
    """Whether a rule makes the target of the source."""
    wanted = commuted(tidied(target))
    return any(commuted(tidied(made)) == wanted for made in rewrites(rule, source))


def tidied(target: Term) -> Term:
    """What a rule leads to, without slices that cut nothing off, and with zeros around zeros put there at once."""
    done: dict[Term, Term] = {}
    for term in subterms(target):
        made = made_over(term, tuple(done[i] for i in term.inputs))
        op, below = made.operator, made.inputs[0] if made.inputs else made
        if isinstance(op, Slice) and are_equal(op.start, 0) and are_equal(op.stop, below.shape[op.axis]):
            made = below
        elif isinstance(op, Pad) and isinstance(below.operator, Pad):
            both = zip(op.pads, below.operator.pads, strict=True)
            made = make(Pad(tuple(a + b for a, b in both)), below.inputs)
        done[term] = made
    return done[target]


def open_conditions(source: tuple[Term, ...], target: tuple[Term, ...], legal: bool = False) -> tuple[Condition, ...]:
    """Equalities and divisibilities that the targets ask for and the sources do not state; where these do not make sure
    of it, that the sizes in attributes are `legal` too.
    """
    stated = conditions(*source)
    keys, rests = {c.key for c in stated}, {str(c.right - c.left) for c in stated if c.relation == "<="}
    sizes = {name: symbol(name) + 1 for name in size_symbols(*source)}

    def follows(asked: Condition) -> bool:
        rest = asked.right - asked.left
        by_sizes = str(rest) in rests or nonnegative(substitute(rest, sizes), least=0)
        return asked.key in keys or (asked.relation == "<=" and by_sizes)

    operators = [t.operator for t in subterms(*target) if isinstance(t.operator, Declared)] if legal else []
    asked = dict.fromkeys(c for op in operators for c in op.legal() if isinstance(c, Condition))
    asked |= dict.fromkeys(c for c in conditions(*target) if c.relation in ("=", "divides"))
    return tuple(c for c in asked if not follows(c))


def _with_symbols(roots: tuple[Term, ...], generality: Generality) -> tuple[Term, ...]:
    """The terms made anew, bottom up, over symbols."""
    done: dict[Term, Term] = {}
    fresh = itertools.count()
    shared = shared_places(roots)
    for term in subterms(*roots):
        op = term.operator
        if isinstance(op, Variable):
            dims = [1 if d == 1 and not generality.ones else symbol(f"{op.label}{i}") for i, d in enumerate(term.shape)]
            done[term] = variable(op.label, dims)
            continue
        assert isinstance(op, Declared)
        # Each use of a broadcast has a shape of its own: two that are equal at the sizes found need not be in general.
        inputs = [
            _spread(i.operator, done[i], fresh, generality) if isinstance(i.operator, Expand) else done[i]
            for i in term.inputs
        ]
        if isinstance(op, Expand):
            done[term] = inputs[0]  # what is broadcast; each use has a shape of its own
            continue
        if isinstance(op, Reshape):
            sizes = list(_regrouped(_numbers(term.inputs[0].shape), inputs[0].shape, _numbers(op.to)))
        else:
            found = dict(_cuts(term.inputs[0], op.axis, done)) if generality.cuts and isinstance(op, Slice) else {}
            of_term = generality if inputs else CONSTANTS
            stays = of_term.staying(term, shared)
            sizes = [
                found.get(d, d if kept else symbol(f"{name}_{d}"))
                for name, d, kept in zip(generality.names(op, shared), op.sizes(), stays, strict=True)
            ]
        done[term] = make(op.with_sizes(sizes), inputs)
    return tuple(
        _spread(r.operator, done[r], fresh, generality) if isinstance(r.operator, Expand) else done[r] for r in roots
    )


def _cuts(term: Term, axis: int, general: Mapping[Term, Term]) -> Iterator[tuple[Dim, Dim]]:
    """Where a term can be cut along an axis so that nothing joined before is cut apart: at the size found, and over
    symbols. What is not a concat has the cuts of its inputs, along axes that are as long.
    """
    yield 0, 0
    op = term.operator
    if isinstance(op, Concat) and op.axis == axis:
        left, right = term.inputs
        yield from _cuts(left, axis, general)
        for found, symbolic in _cuts(right, axis, general):
            yield left.shape[axis] + found, general[left].shape[axis] + symbolic
    elif not term.is_variable:
        for i in term.inputs:
            for a, d in enumerate(i.shape if i in general else ()):
                if d == term.shape[axis]:
                    yield from _cuts(i, a, general)
    if term in general and len(general[term].shape) > axis:
        yield term.shape[axis], general[term].shape[axis]


def _spread(op: Expand, x: Term, fresh: Iterator[int], generality: Generality) -> Term:
    to = (1 if d == 1 and not generality.ones else symbol(f"_to{next(fresh)}") for d in op.to)
    return make(Expand(op.axes, tuple(to)), (x,))


def _regrouped(found: tuple[int, ...], general: Shape, to: Sequence[int]) -> Iterator[Dim]:
    """The shape of a reshape that merges neighbouring axes and splits others, over the general sizes.

    What an axis is split into are symbols, equal ones for equal sizes: the size of the axis follows. Raises
    `ShapeError` where no groups of neighbours on both sides are of one size.
    """
    place, rest = 0, list(to)
    while rest:
        taken, given = [place], [rest.pop(0)]
        if given == [1] and found[place : place + 1] != (1,):
            yield 1
            continue
        while (have := math.prod(found[i] for i in taken)) != (want := math.prod(given)):
            if have < want and taken[-1] + 1 < len(found):
                taken.append(taken[-1] + 1)
            elif have > want and rest:
                given.append(rest.pop(0))
            else:
                raise ShapeError(f"a reshape of {found} to {to} does not regroup axes")
        place = taken[-1] + 1
        if len(given) == 1:
            yield product([general[i] for i in taken])
        else:
            yield from (d if d == 1 else symbol(f"part{d}") for d in given)


def _numbers(shape: Shape) -> tuple[int, ...]:
    return tuple(d for d in shape if isinstance(d, int))


def typed(*roots: Term, by_numerators: bool = False) -> tuple[Term, ...]:
    """Terms of one value, with the equalities between sizes that they need solved; those of quotients `by_numerators`,
    which may be more than they need. Raises `ShapeError` where none would do.
    """
    for _ in range(8):
        asked = [*conditions(*roots)]
        for other in roots[1:]:
            asked += _of_one_shape(roots[0], other)
        asked += [n for c in asked if by_numerators and (n := _numerators(c)) is not None]
        values, _ = unify(asked, _order(roots), positive_symbols(*roots))
        if not values:
            return roots
        roots = resize(roots, values)
    return roots


def _of_one_shape(term: Term, other: Term) -> Iterator[Condition]:
    if term.type.rank != other.type.rank:
        raise ShapeError(f"ranks differ: {term.type} and {other.type}")
    for a, b in zip(term.shape, other.shape, strict=True):
        truth = equal(a, b)
        if truth is False:
            raise ShapeError(f"shapes differ: {term.shape} and {other.shape}")
        if isinstance(truth, Condition):
            yield truth


def _numerators(asked: Condition) -> Condition | None:
    """That what is divided by one size is equal, where two quotients have to be."""
    difference = asked.left - asked.right if asked.relation == "=" else 0
    terms = difference.terms if isinstance(difference, Expr) else ()
    quotients = [m[0] for m, _ in terms if len(m) == 1 and isinstance(m[0], Floor)]
    if len(quotients) != len(terms) or sorted(k for _, k in terms) != [-1, 1]:
        return None
    a, b = quotients
    same = equal(a.numerator, b.numerator) if are_equal(a.denominator, b.denominator) else None
    return same if isinstance(same, Condition) else None


def _order(roots: tuple[Term, ...]) -> list[str]:
    """Symbols of variables first (kept longest), then those of attributes; those of broadcasts are not kept."""
    dims = size_symbols(*roots)
    names = all_symbols(*roots)
    return sorted(n for n in names if n in dims) + [n for n in names if n not in dims and not n.startswith("_")]


def abstracted(source: Term, target: Term, same: Callable[[Term, Term], bool]) -> tuple[Term, Term]:
    """Both terms with the largest subterms that they share made variables, where `same(left, right)` still holds."""
    shared = set(subterms(source)) & set(subterms(target))
    for term in reversed(list(subterms(source))):
        if term in shared and not term.is_variable and term is not source and term is not target:
            hole = variable(f"hole{len(variables(source))}", term.shape)
            left, right = replace_all((source, target), {term: hole})
            if same(left, right):
                return abstracted(left, right, same)
    return source, target
