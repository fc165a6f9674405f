"""Matching a rule's left-hand side against terms, and building its right-hand side."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from superopt.bounds import nonnegative
from superopt.demands import assuming
from superopt.dim import Condition, Dim, Expr, Shape, equal, symbol_name
from superopt.errors import ShapeError, Undecided
from superopt.operators.declared import Declared
from superopt.operators.element_types import COMPUTED
from superopt.operators.facts import known_facts, supposing
from superopt.operators.layout import Expand
from superopt.relations import equal_shapes
from superopt.rules.rule import Rule, of_any_rank
from superopt.substitution import substitute, substitute_condition, symbols
from superopt.term import Term, made_over, make, subterms


class Bindings(NamedTuple):
    """What a match found: terms for variables, sizes for symbols, and equations of sizes still to be checked."""

    tensors: Mapping[Term, Term]
    sizes: Mapping[str, Dim]
    pending: tuple[tuple[Dim, Dim], ...] = ()
    axes: Shape | None = None
    """What `*` stands for."""


def matches(rule: Rule, roots: tuple[Term, ...], granted: Container[Condition] = ()) -> Iterator[Bindings]:
    """Every way in which the rule's sources stand for these terms; commutative operators match either way round.

    Conditions on sizes must hold, or be among those `granted`.
    """
    start = [Bindings({}, {})]
    for pattern, root in zip(rule.source, roots, strict=True):
        start = [b for a in start for b in _match(pattern, root, a)]
    for bindings in start:
        if _settled(rule, bindings, granted):
            yield bindings


def build(rule: Rule, bindings: Bindings) -> tuple[Term, ...] | None:
    """The right-hand side for a match, or None where its operators do not accept these sizes."""
    done: dict[Term, Term] = dict(bindings.tensors)
    try:
        for term, op, sizes in _steps(rule.target):
            if term not in done:
                if isinstance(op, Expand) and of_any_rank(term):
                    done[term] = _repeated(done[term.inputs[0]], bindings.axes or ())
                    continue
                own = op.with_sizes([substitute(d, bindings.sizes) for d in sizes]) if sizes else op
                done[term] = make(own, [done[i] for i in term.inputs])
    except (ShapeError, Undecided):
        return None
    return tuple(done[t] for t in rule.target)


@lru_cache(maxsize=1 << 14)  # rules are built again for each of many windows
def _steps(target: tuple[Term, ...]) -> list[tuple[Term, Declared, tuple[Dim, ...]]]:
    """What a right-hand side is made of, inputs first: terms with their operators and the sizes of these."""
    made = [(t, t.operator) for t in subterms(*target)]
    return [(t, op, op.sizes()) for t, op in made if isinstance(op, Declared)]


def _repeated(number: Term, to: Shape) -> Term:
    return Expand((), to)(number) if to else number


def rewrites(rule: Rule, root: Term) -> Iterator[Term]:
    """What a rule with one source makes of a term, each result once."""
    seen: set[Term] = {root}
    for bindings in matches(rule, (root,)):
        built = build(rule, bindings)
        if built is not None and built[0] not in seen:
            seen.add(built[0])
            yield built[0]


def _match(pattern: Term, term: Term, bindings: Bindings) -> Iterator[Bindings]:
    known = bindings.tensors.get(pattern)
    if known is not None:
        if known is term:
            yield bindings
        return
    if not pattern.is_variable and type(pattern.operator) is not type(term.operator):
        return
    if of_any_rank(term) and not of_any_rank(pattern):
        return  # a rule about any rank is no case of one about vectors
    if pattern.is_variable:
        if term.type.dtype not in COMPUTED:
            return  # rules are about real numbers: integers overflow
        bound = _bind_shape(pattern, term, bindings)
        if bound is not None:
            yield bound
        return
    if not same_head(pattern, term):
        return
    ours, theirs = pattern.operator, term.operator
    assert isinstance(ours, Declared)
    assert isinstance(theirs, Declared)
    if of_any_rank(pattern):
        sized = _bind_axes(term.shape, bindings)
    else:
        sized = _bind_sizes(list(zip(ours.sizes(), theirs.sizes(), strict=True)), bindings)
    if sized is None:
        return
    orders = (
        [term.inputs, term.inputs[::-1]] if ours.commutative and term.inputs[0] is not term.inputs[1] else [term.inputs]
    )
    for inputs in orders:
        found = [sized]
        for p, t in zip(pattern.inputs, inputs, strict=True):
            found = [b for a in found for b in _match(p, t, a)]
        for b in found:
            yield Bindings({**b.tensors, pattern: term}, b.sizes, b.pending, b.axes)


def same_head(pattern: Term, term: Term) -> bool:
    """Whether two terms have the same operator, but for attributes that are sizes, and the same rank, if not any."""
    a, b = pattern.operator, term.operator
    return (
        type(a) is type(b)
        and isinstance(a, Declared)
        and isinstance(b, Declared)
        and a.structure() == b.structure()
        and (of_any_rank(pattern) or (len(a.sizes()) == len(b.sizes()) and pattern.type.rank == term.type.rank))
    )


def _bind_shape(pattern: Term, term: Term, bindings: Bindings) -> Bindings | None:
    if 0 in term.shape if term.sized else any(isinstance(d, int) and d == 0 for d in term.shape):
        return None
    any_rank = of_any_rank(pattern)
    if not any_rank and len(pattern.shape) != len(term.shape):
        return None
    bound = Bindings({**bindings.tensors, pattern: term}, bindings.sizes, bindings.pending, bindings.axes)
    if any_rank:
        return _bind_axes(term.shape, bound)
    return _bind_sizes(list(zip(pattern.shape, term.shape, strict=True)), bound)


def _bind_axes(shape: Shape, bindings: Bindings) -> Bindings | None:
    """Let `*` stand for all axes of a shape, which are then those of every tensor that has it."""
    if bindings.axes is None:
        return bindings._replace(axes=shape)
    same = shape is bindings.axes or equal_shapes(shape, bindings.axes)
    return bindings if same else None


def _bind_sizes(pairs: list[tuple[Dim, Dim]], bindings: Bindings) -> Bindings | None:
    """Bind bare symbols to sizes; what is an expression waits until everything is bound."""
    if not pairs:
        return bindings
    sizes, pending = dict(bindings.sizes), list(bindings.pending)
    for ours, theirs in pairs:
        if isinstance(ours, int):
            if equal(ours, theirs) is not True:
                return None
        elif (name := symbol_name(ours)) is not None:
            if equal(sizes.setdefault(name, theirs), theirs) is not True:
                return None
        else:
            pending.append((ours, theirs))
    return Bindings(bindings.tensors, sizes, tuple(pending), bindings.axes)


def _settled(rule: Rule, bindings: Bindings, granted: Container[Condition]) -> bool:
    """Whether every equation of sizes and every condition is decided, and true, or granted."""
    try:
        return _holds(rule, bindings, granted)
    except ShapeError:  # a division by a size that is 0 here
        return False


def _holds(rule: Rule, bindings: Bindings, granted: Container[Condition]) -> bool:
    for ours, theirs in bindings.pending:
        if not (isinstance(ours, Expr) and symbols(ours) <= set(bindings.sizes)):
            return False
        if equal(substitute(ours, bindings.sizes), theirs) is not True:
            return False
    if any(f.kind not in known_facts(bindings.tensors[f.of]) for f in rule.facts):
        return False
    truths = [substitute_condition(c, bindings.sizes) for c in rule.conditions]
    return all(t is True or (isinstance(t, Condition) and (t in granted or _is_plain(t))) for t in truths)


def _is_plain(condition: Condition) -> bool:
    """Whether a condition holds of all sizes and attributes, of which none is negative."""
    return condition.relation == "<=" and nonnegative(condition.right - condition.left, least=0)


def instance_of(special: Rule, general: Rule) -> bool:
    """Whether one rule is another with something put in for its variables and sizes."""
    if len(special.source) != len(general.source):
        return False
    granted = {
        *special.conditions,
        *(replace(c, left=c.right, right=c.left) for c in special.conditions if c.relation == "="),
    }
    with supposing(special.facts):
        for bindings in matches(general, special.source, granted):
            with assuming():  # sizes of a rule are symbols, and what they must meet is the rule's own business
                built = build(general, bindings)
            if built is not None and tuple(map(commuted, built)) == tuple(map(commuted, special.target)):
                return True
    return False


def commuted(term: Term, done: dict[Term, Term] | None = None) -> Term:
    """The term with the inputs of commutative operators in one order, so that terms equal but for that are one.

    `done` holds what has been put in order, and is added to.
    """
    done = {} if done is None else done
    if term in done:
        return done[term]
    with assuming():
        for t in subterms(term, known=done):
            inputs = [done[i] for i in t.inputs]
            if isinstance(t.operator, Declared) and t.operator.commutative:
                inputs.sort(key=repr)
            done[t] = made_over(t, tuple(inputs))
    return done[term]
