"""From an equation found at one size to equations over symbols: the most general typing that makes it well formed.

Every size becomes a symbol of its own; what the operators ask of the sizes on both sides, and that both sides have one
shape, is solved for them (unification). So an equation found where two widths happened to be equal is stated for any
two widths, unless one side needs them equal; then the variables' shapes say so.
"""

from __future__ import annotations

from superopt.bounds import nonnegative
from superopt.demands import assuming
from superopt.dim import Condition, Expr, Floor, symbol
from superopt.enumerate.generality import Generality
from superopt.enumerate.over_symbols import with_symbols
from superopt.enumerate.typed import typed
from superopt.errors import RuleError, ShapeError, Undecided
from superopt.operators.declared import Declared
from superopt.operators.padding import Pad
from superopt.operators.picks import Slice
from superopt.operators.symbolic import conditions
from superopt.relations import are_equal
from superopt.rules.match import commuted, rewrites
from superopt.rules.naming import canonical
from superopt.rules.rule import Rule
from superopt.substitution import substitute
from superopt.term import Term, made_over, make, size_symbols, subterms


def generalized(source: Term, target: Term, generality: Generality) -> Rule | None:
    """The rule over symbols that has the found equation as an instance; None where there is none of this generality."""
    try:
        with assuming():
            roots = with_symbols((source, target), generality)
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
