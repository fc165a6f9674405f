"""Terms over symbolic sizes: when they are well formed, what that fixes, and examples at small sizes."""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Mapping, Sequence
from weakref import WeakKeyDictionary

import numpy as np

from superopt.demands import assuming
from superopt.dim import Condition, Dim, Expr, Symbol, at_most, floor_div, product, symbol, symbol_name
from superopt.errors import ShapeError, Undecided
from superopt.operators.declared import Declared
from superopt.substitution import substitute, substitute_condition, symbols
from superopt.term import Term, Variable, make, size_symbols, subterms, variable, variables


def conditions(*roots: Term) -> list[Condition]:
    """What must hold of the symbols for all terms to be well formed. Raises `ShapeError` where nothing would do."""
    return list(dict.fromkeys(condition for term in subterms(*roots) for condition in _own_conditions(term)))


_known: WeakKeyDictionary[Term, tuple[Condition, ...]] = WeakKeyDictionary()
"""What was found of terms that are still there: rules are asked several times while they are proved."""


def _own_conditions(term: Term) -> tuple[Condition, ...]:
    if term not in _known:
        with assuming() as noted:
            term.operator.type_of(tuple(i.type for i in term.inputs))
        _known[term] = tuple(noted)
    return _known[term]


def all_symbols(*roots: Term) -> list[str]:
    """The names of all symbols in the shapes of variables and in attributes, in the order of first use."""
    found: dict[str, None] = {}
    for term in subterms(*roots):
        op = term.operator
        dims = op.type.shape if isinstance(op, Variable) else op.sizes() if isinstance(op, Declared) else ()
        for dim in dims:
            found.update(dict.fromkeys(sorted(symbols(dim))))
    return list(found)


def resize(roots: Sequence[Term], values: Mapping[str, Dim]) -> tuple[Term, ...]:
    """The terms with symbols replaced by sizes, in variables and attributes. Raises what `make` raises."""
    done: dict[Term, Term] = {}
    for term in subterms(*roots):
        op = term.operator
        if isinstance(op, Variable):
            shape = [substitute(d, values) for d in op.type.shape]
            done[term] = variable(op.label, shape, op.type.dtype, op.constant)
        else:
            assert isinstance(op, Declared)
            sized = op.with_sizes([substitute(d, values) for d in op.sizes()])
            done[term] = make(sized, (done[i] for i in term.inputs))
    return tuple(done[root] for root in roots)


def positive_symbols(*roots: Term) -> frozenset[str]:
    """The names of the symbols that are at least 1: sizes of variables, and attributes that must be."""
    found = set(size_symbols(*roots))
    for term in subterms(*roots):
        op = term.operator
        for f in op.fields if isinstance(op, Declared) else ():
            if f.facts.size and f.facts.least >= 1:
                value = getattr(op, f.name)
                found |= {n for d in (value if isinstance(value, tuple) else (value,)) if (n := symbol_name(d))}
    return frozenset(found)


def unify(
    open_conditions: Sequence[Condition], keep: Sequence[str] = (), positive: Container[str] = ()
) -> tuple[dict[str, Dim], list[Condition]]:
    """Solve equalities for symbols, those in `keep` last: the values found, and the conditions that remain.

    Factors that all of an equality has, and that are `positive`, are cancelled.

    Raises `ShapeError` where an equality cannot hold.
    """
    values: dict[str, Dim] = {}
    rest = list(open_conditions)
    solved = True
    while solved:
        solved = False
        for condition in rest:
            found = _solve(condition, keep, positive) if condition.relation == "=" else None
            if found is not None:
                values = {n: substitute(d, dict([found])) for n, d in values.items()} | dict([found])
                rest = _reduced(rest, dict([found]))
                solved = True
                break
    return values, rest


def _reduced(open_conditions: Sequence[Condition], values: Mapping[str, Dim]) -> list[Condition]:
    remaining: dict[Condition, None] = {}
    for condition in open_conditions:
        truth = substitute_condition(condition, values)
        if isinstance(truth, Condition):
            remaining[truth] = None
        elif not truth:
            raise ShapeError(f"the sizes contradict each other: {condition}")
    return list(remaining)


def _solve(condition: Condition, keep: Sequence[str], positive: Container[str]) -> tuple[str, Dim] | None:
    """A symbol that the equality determines, with its value: it stands alone in one monomial and nowhere else."""
    difference = _cancelled(condition.left - condition.right, positive)
    assert isinstance(difference, Expr)
    candidates: list[tuple[int, str, Dim]] = []
    for monomial, coefficient in difference.terms:
        if len(monomial) == 1 and isinstance(monomial[0], Symbol) and abs(coefficient) == 1:
            name = monomial[0].name
            value = symbol(name) - difference * coefficient
            if name not in symbols(value):
                candidates.append((keep.index(name) if name in keep else -1, name, value))
    if not candidates:
        return None
    _, name, value = _last(candidates)
    return name, value


def _cancelled(dim: Dim, positive: Container[str]) -> Dim:
    """A size that is to be 0 without the positive factors that all of it has, the largest integer among them."""
    if isinstance(dim, Expr):
        dim = floor_div(dim, math.gcd(*(c for _, c in dim.terms)))
    for atom in min((m for m, _ in dim.terms), key=len) if isinstance(dim, Expr) else ():
        is_positive = isinstance(atom, Symbol) and atom.name in positive
        if is_positive and isinstance(dim, Expr) and len(dim.terms) > 1 and all(atom in m for m, _ in dim.terms):
            dim = floor_div(dim, Expr((((atom,), 1),)))
    return dim


def _last(candidates: list[tuple[int, str, Dim]]) -> tuple[int, str, Dim]:
    """Of the symbols an equality could be solved for: one not to keep, else the last of those to keep."""
    free = [c for c in candidates if c[0] < 0]
    return max(free, key=lambda c: c[1]) if free else max(candidates, key=lambda c: c[0])


def fitting(
    roots: Sequence[Term], open_conditions: Sequence[Condition], names: Sequence[str]
) -> tuple[dict[str, Dim], list[Condition]]:
    """`unify` for all that makes the terms well formed, with sizes of at least 1, under further conditions."""
    positive = [c for v in variables(*roots) for d in v.shape if isinstance(c := at_most(1, d), Condition)]
    return unify([*conditions(*roots), *positive, *open_conditions], names, positive_symbols(*roots))


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
    for _ in range(300 * count if tries is None else tries):
        # Small sizes meet conditions more often, so some of what is drawn is 0 or 1.
        drawn = np.where(
            rng.random(len(free)) < 0.7, rng.integers(0, largest + 1, len(free)), rng.integers(0, 2, len(free))
        )
        values: dict[str, Dim] = dict(zip(free, map(int, drawn), strict=True))
        values |= {n: d for n, d in usual.items() if n in values and rng.random() < 0.6}
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


def defaults(roots: Sequence[Term]) -> dict[str, int]:
    """For symbols that stand for an attribute, the attribute's default."""
    found: dict[str, int] = {}
    for term in subterms(*roots):
        op = term.operator
        for f in op.fields if isinstance(op, Declared) else ():
            if f.facts.size and isinstance(f.default, tuple | int):
                value, default = getattr(op, f.name), f.default
                values, usual = (v if isinstance(v, tuple) else (v,) for v in (value, default))
                found |= {str(v): d for v, d in zip(values, usual, strict=False) if symbols(v) == {str(v)}}
    return found
