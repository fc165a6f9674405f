"""Rules about tensors of any rank: what is point-wise holds for all shapes if it holds for vectors.

In such a rule `*` stands for all axes of a tensor, the same of all that have it; a tensor without axes is a number, and
numbers are repeated to `*`. That it holds follows from its holding for vectors of any size: an element of a result
depends on one element of each input, wherever these are put. So it is proved for vectors, and executed at other ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from superopt.demands import assuming
from superopt.dim import Dim, symbol
from superopt.operators.constant import Scalar
from superopt.operators.declared import Declared
from superopt.operators.layout import Expand
from superopt.rules.rule import AXES, Rule, of_any_rank
from superopt.term import Fact, Operator, Term, Variable, make, subterms, variable


def at_rank(rule: Rule, rank: int) -> Rule:
    """A rule about any rank, at one; any other rule as it is."""
    if not of_any_rank(*rule.given):
        return rule
    return _reshaped(rule, {v: [symbol(f"n{a}") for a in range(rank)] if of_any_rank(v) else () for v in rule.given})


def at_ranks(rules: Sequence[Rule], ranks: Sequence[int] = (1, 2, 3, 4)) -> list[Rule]:
    """Rules without those about any rank, which stand at each of some ranks instead, called so."""
    found: list[Rule] = []
    for rule in rules:
        if of_any_rank(*rule.given):
            found += [replace(at_rank(rule, rank), name=f"{rule.name}-rank-{rank}") for rank in ranks]
        else:
            found.append(rule)
    return found


def at_any_rank(rule: Rule) -> Rule:
    """A point-wise rule, over tensors of one shape and numbers that are repeated to it, as one about any rank.

    Any other rule as it is.
    """
    terms = list(subterms(*rule.source, *rule.target))
    shapes = {t.shape for t in terms}
    wide = shapes - {()} or {()}
    operators = [t.operator for t in terms]
    if len(wide) != 1 or of_any_rank(*terms) or rule.conditions or not all(map(_is_pointwise, operators)):
        return rule
    (whole,) = wide
    if not whole and any(isinstance(op, Expand) for op in operators):
        return rule
    return _reshaped(rule, {v: AXES if len(v.shape) == len(whole) else () for v in rule.given})


def _is_pointwise(op: Operator) -> bool:
    if isinstance(op, Expand):
        return not op.axes
    return isinstance(op, Variable | Scalar) or (isinstance(op, Declared) and op.pointwise and not op.sizes())


def _reshaped(rule: Rule, shapes: dict[Term, Sequence[Dim]]) -> Rule:
    """The rule with variables of other shapes; whatever is repeated is so to the shape of those that have axes."""
    whole = max(shapes.values(), key=len, default=())
    done: dict[Term, Term] = {}
    with assuming():
        for t in subterms(*rule.source, *rule.target):
            op = t.operator
            if isinstance(op, Variable):
                done[t] = variable(op.label, shapes[t], op.type.dtype, op.constant)
            elif isinstance(op, Expand):
                number = done[t.inputs[0]]
                done[t] = Expand((), tuple(whole))(number) if whole else number
            else:
                done[t] = make(op, (done[i] for i in t.inputs))
    count = len(rule.source)
    roots = [done[t] for t in (*rule.source, *rule.target)]
    facts = tuple(Fact(f.kind, done[f.of]) for f in rule.facts)
    return replace(rule, source=tuple(roots[:count]), target=tuple(roots[count:]), facts=facts)
