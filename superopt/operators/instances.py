"""Examples of terms over symbolic sizes, at small sizes at which they are well formed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product as cartesian

import numpy as np

from superopt.dim import Condition, Dim, Expr, product
from superopt.errors import ShapeError, Undecided
from superopt.operators.declared import Declared
from superopt.operators.solved_sizes import fitting
from superopt.operators.symbolic import all_symbols, defaults, resize
from superopt.substitution import substitute, substitute_condition, symbols
from superopt.term import Term, subterms


def small_instances(
    roots: Sequence[Term], open_conditions: Sequence[Condition], count: int, seed: int, largest: int = 4
) -> Iterator[tuple[Term, ...]]:
    """Up to `count` different examples of the terms at small random sizes at which all are well formed."""
    for _, example in sized_instances(roots, open_conditions, count, seed, largest):
        yield example


def sized_instances(
    roots: Sequence[Term],
    open_conditions: Sequence[Condition],
    count: int,
    seed: int,
    largest: int = 4,
    tries: int | None = None,
) -> Iterator[tuple[dict[str, Dim], tuple[Term, ...]]]:
    """`small_instances`, each with its sizes by name; `tries` bounds how many sizes are drawn."""
    names = all_symbols(*roots)
    try:
        fixed, rest = fitting(roots, open_conditions, names)
    except ShapeError:
        return
    rng, seen = np.random.default_rng(seed), set()
    free, usual = [n for n in names if n not in fixed], defaults(roots)
    untried = _draws(free, usual, largest) if len(free) <= (1 if rest else 2) else None
    for _ in range(300 * count if tries is None else tries):
        if untried is not None and not untried:
            return
        # Small sizes meet conditions more often, so some of what is drawn is 0 or 1.
        drawn = np.where(
            rng.random(len(free)) < 0.7, rng.integers(0, largest + 1, len(free)), rng.integers(0, 2, len(free))
        )
        values: dict[str, Dim] = dict(zip(free, map(int, drawn), strict=True))
        values |= {n: d for n, d in usual.items() if n in values and rng.random() < 0.6}
        if untried is not None:
            untried.discard(tuple(values[n] for n in free))
        try:
            if not _mended(values, rest, 2 * largest, rng):
                continue
            values |= {n: substitute(d, values) for n, d in fixed.items()}
            sizes = tuple(values[n] for n in names)
            if sizes in seen:
                continue
            seen.add(sizes)
            example = resize(roots, values)
        except (ShapeError, Undecided):
            continue
        if is_small(example):
            yield {n: values[n] for n in names}, example
            count -= 1
        if not count:
            return


def _draws(free: Sequence[str], usual: Mapping[str, Dim], largest: int) -> set[tuple[Dim, ...]]:
    """All sizes that may be drawn: of one or two there are so few that all were tried long before tries are over."""
    return set(cartesian(*({*range(max(largest, 1) + 1), *([usual[n]] if n in usual else [])} for n in free)))


LARGEST_EXAMPLE = 100_000
"""How many elements a term of an example may have, and how large an attribute may be."""


def is_small(example: Sequence[Term]) -> bool:
    """Whether all terms have sizes of at least 1, and few enough elements to be computed at once."""
    for t in subterms(*example):
        sizes = t.operator.sizes() if isinstance(t.operator, Declared) else ()
        if not all(isinstance(d, int) and d >= 1 for d in t.shape) or t.type.rank > 32:
            return False
        if product(t.shape) > LARGEST_EXAMPLE or any(isinstance(d, int) and d > LARGEST_EXAMPLE for d in sizes):
            return False
    return True


def _mended(values: dict[str, Dim], rest: Sequence[Condition], largest: int, rng: np.random.Generator) -> bool:
    """Whether the conditions hold, after each that did not was solved for one of its symbols (in place)."""
    for _ in range(2 * len(rest) + 1):
        broken = next((c for c in rest if substitute_condition(c, values) is not True), None)
        if broken is None:
            return True
        names = sorted(symbols(broken.left) | symbols(broken.right))
        solved = ((names[i], _solution(broken, names[i], values)) for i in rng.permutation(len(names)))
        fitting = next(((n, v) for n, v in solved if v is not None and 0 <= v <= largest), None)
        if fitting is None:
            return False
        values[fitting[0]] = fitting[1]
    return False


def _solution(condition: Condition, name: str, values: Mapping[str, Dim]) -> int | None:
    """A value for one symbol at which an equality or inequality holds, where it is linear in it; others as given."""
    others = {n: d for n, d in values.items() if n != name}
    difference = substitute(condition.right, others) - substitute(condition.left, others)
    if not isinstance(difference, Expr) or condition.relation not in ("=", "<="):
        return None
    parts = {"*".join(map(str, monomial)): coefficient for monomial, coefficient in difference.terms}
    slope, offset = parts.pop(name, 0), parts.pop("", 0)
    if parts or not slope or (condition.relation == "=" and offset % slope):
        return None
    return -(offset // slope) if slope > 0 else offset // -slope
