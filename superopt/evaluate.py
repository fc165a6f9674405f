"""The value of a term in a carrier, given values for its variables."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from superopt.arithmetic import EXACT, Array, Carrier
from superopt.term import Term, subterms, variables


def evaluate(root: Term, ring: Carrier, values: Mapping[Term, Array]) -> Array:
    """The value of one term; every shared subterm is computed once."""
    return evaluate_all((root,), ring, values)[0]


def evaluate_all(roots: tuple[Term, ...], ring: Carrier, values: Mapping[Term, Array]) -> tuple[Array, ...]:
    """The values of several terms, each intermediate value dropped after its last use."""
    order = [t for t in subterms(*roots) if t not in values]
    uses: dict[Term, int] = {}
    for term in order:
        for i in set(term.inputs):
            uses[i] = uses.get(i, 0) + 1
    kept, done = set(roots), dict(values)
    for term in order:
        done[term] = term.operator.eval(ring, *(done[i] for i in term.inputs))
        for i in set(term.inputs):
            uses[i] -= 1
            if not uses[i] and i not in kept and i not in values:
                del done[i]
    return tuple(done[root] for root in roots)


def sample(roots: tuple[Term, ...], ring: Carrier, seed: int) -> dict[Term, Array]:
    """Random values for all variables under the roots, whose sizes are integers; the same for the same seed."""
    rng = np.random.default_rng(seed)
    return {v: ring.sample([int(d) for d in v.shape], rng) for v in variables(*roots)}  # type: ignore[arg-type]


def same_value(left: Term, right: Term) -> bool:
    """Whether two terms agree on values drawn once, in one of the exact carriers: a first look, and no proof."""
    return any(
        bool((evaluate(left, carrier, drawn) == evaluate(right, carrier, drawn)).all())
        for carrier in EXACT
        for drawn in [sample((left, right), carrier, 1)]
    )
