"""A product of a sum with a weight, where the factor meets something behind the sum: a convolution below a bias.

A rule that multiplies out leaves as much work as there was: the weights' own product costs nothing, and the factor
saves only what the next rewrite makes of it. So that is looked at, and where something is saved it is done at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from superopt.operators.declared import Declared
from superopt.operators.pointwise import Add, Div, Mul
from superopt.rules.match import commuted
from superopt.rules.rule import Rule, of_any_rank
from superopt.search.rewriting.regroup import Regrouping
from superopt.search.rewriting.rewrites import ByRule, Rewrite
from superopt.term import Term, make, subterms


def distributing(rewrites: Sequence[Rewrite]) -> Regrouping:
    """By the name of an operator, the rule that says that it may be applied to the parts of a sum instead."""
    rules = [r for r in rewrites if isinstance(r, ByRule) and len(r.heads) == 1 and r.depth == 2]
    return {r.heads[0]: r for r in reversed(rules) if _says_so(r.rule)}


def _says_so(rule: Rule) -> bool:
    """Whether a rule is `(x + y)·z = x·z + y·z`, or the same of quotients, for all tensors of any rank."""
    (source,), (target,) = rule.source, rule.target
    op = source.operator
    if not isinstance(op, Mul | Div) or rule.facts or rule.conditions or not of_any_rank(*subterms(source)):
        return False
    for total, z in _ordered(source):
        if isinstance(total.operator, Add) and z.is_variable and z not in total.inputs and len(set(total.inputs)) == 2:
            x, y = total.inputs
            return commuted(target) == commuted(Add()(op(x, z), op(y, z)))
    return False


def distributed(term: Term, saved: Callable[[Term], float], rules: Regrouping) -> Iterator[tuple[Rewrite, Term, float]]:
    """A product with a weight of a sum with another, multiplied out where the first saves something so, and what."""
    op = term.operator
    if op.name not in rules or term.constant or not isinstance(op, Declared):
        return
    for total, factor in _ordered(term):
        if not factor.constant or not isinstance(total.operator, Add):
            continue
        running = [i for i in total.inputs if not i.constant]
        if len(running) == 1:
            parts = {i: op(i, factor) for i in total.inputs}
            if saves := saved(parts[running[0]]):
                yield rules[op.name], make(total.operator, [parts[i] for i in total.inputs]), saves


def _ordered(term: Term) -> list[tuple[Term, Term]]:
    """The inputs of a product, in both orders, or of a quotient."""
    x, y = term.inputs
    return [(x, y), (y, x)] if isinstance(term.operator, Mul) else [(x, y)]
