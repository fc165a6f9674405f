"""The value of a term in a carrier, given values for its variables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping

import numpy as np

from superopt.arithmetic.carrier import Array, Carrier
from superopt.arithmetic.exact import EXACT
from superopt.term import Term, subterms, variables


def evaluate(root: Term, ring: Carrier, values: Mapping[Term, Array]) -> Array:
    """The value of one term; every shared subterm is computed once."""
    return evaluate_all((root,), ring, values)[0]


def evaluate_all(roots: tuple[Term, ...], ring: Carrier, values: Mapping[Term, Array]) -> tuple[Array, ...]:
    """The values of several terms, each intermediate value dropped after its last use."""
    steps = _steps(roots, values)
    uses = Counter(i for _, inputs in steps for i in set(inputs))
    kept, done = set(roots), dict(values)
    for term, inputs in steps:
        evaluated = term.operator.eval if len(inputs) == len(term.inputs) else term.operator.eval_chain
        done[term] = evaluated(ring, *(done[i] for i in inputs))
        for i in set(inputs):
            uses[i] -= 1
            if not uses[i] and i not in kept and i not in values:
                del done[i]
    return tuple(done[root] for root in roots)


def _steps(roots: tuple[Term, ...], values: Container[Term]) -> list[tuple[Term, tuple[Term, ...]]]:
    """The terms to evaluate in order, each with what it is evaluated from: a chain of one operator, as a concat of
    many, from all its inputs at once, where nothing else needs what is within.
    """
    order = [t for t in subterms(*roots) if t not in values]
    uses = Counter(i for t in order for i in set(t.inputs))
    spliced: dict[Term, tuple[Term, ...]] = {}
    steps: dict[Term, tuple[Term, ...]] = {}
    for term in order:
        inputs: list[Term] = []
        for i in term.inputs:
            within = term.operator.chains and i in steps and i.operator == term.operator and uses[i] == 1
            if within and i not in roots:
                spliced[i] = steps.pop(i)
            inputs += spliced.get(i, (i,))
        steps[term] = tuple(inputs)
    return list(steps.items())


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
