"""What is known of the elements of terms, from what their operators declare: `gives` and `keeps`."""

from __future__ import annotations

import math
from weakref import WeakKeyDictionary

from superopt.operators.constant import Scalar
from superopt.operators.declare import Declared
from superopt.term import Operator, Term, subterms

_known: WeakKeyDictionary[Term, frozenset[str]] = WeakKeyDictionary()


def given_facts(op: Operator) -> frozenset[str]:
    """What is known of the result of an operator whatever its inputs."""
    if isinstance(op, Scalar):
        known = {"nonnegative": op.value >= 0, "nonzero": op.value != 0, "finite": math.isfinite(op.value)}
        return frozenset(kind for kind, holds in known.items() if holds)
    return op.gives if isinstance(op, Declared) else frozenset()


def known_facts(term: Term) -> frozenset[str]:
    """What is known of each element of a term, whatever the values of its variables."""
    if term not in _known:
        for t in subterms(term, known=_known):
            kept = t.operator.keeps if isinstance(t.operator, Declared) and t.inputs else frozenset()
            _known[t] = given_facts(t.operator) | kept.intersection(*(_known[i] for i in t.inputs))
    return _known[term]
