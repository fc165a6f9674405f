"""What is known of the elements of terms, from what their operators declare: `gives` and `keeps`."""

from __future__ import annotations

import math
from collections.abc import Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from weakref import WeakKeyDictionary

from superopt.operators.constant import Scalar
from superopt.operators.declared import Declared
from superopt.term import Fact, Operator, Term, subterms

_always: MutableMapping[Term, frozenset[str]] = WeakKeyDictionary()
_known = ContextVar("_known", default=_always)


def given_facts(op: Operator) -> frozenset[str]:
    """What is known of the result of an operator whatever its inputs."""
    if isinstance(op, Scalar):
        known = {"nonnegative": op.value >= 0, "nonzero": op.value != 0, "finite": math.isfinite(op.value)}
        return frozenset(kind for kind, holds in known.items() if holds)
    return op.gives if isinstance(op, Declared) else frozenset()


def known_facts(term: Term) -> frozenset[str]:
    """What is known of each element of a term, whatever the values of its variables but for what is supposed."""
    known = _known.get()
    if term not in known:
        for t in subterms(term, known=known):
            kept = t.operator.keeps if isinstance(t.operator, Declared) and t.inputs else frozenset()
            known[t] = given_facts(t.operator) | kept.intersection(*(known[i] for i in t.inputs))
    return known[term]


@contextmanager
def supposing(facts: Sequence[Fact]) -> Iterator[None]:
    """Within it, these facts are known as well: those that a rule states of its variables."""
    if not facts:
        yield
        return
    supposed = {f.of: frozenset(g.kind for g in facts if g.of is f.of) for f in facts}
    before = _known.set(dict(supposed))
    try:
        yield
    finally:
        _known.reset(before)
