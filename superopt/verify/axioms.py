"""Laws as axioms for the solver, with what triggers them."""

from __future__ import annotations

from typing import Any

from superopt.demands import assuming
from superopt.dim import Dim, symbol_name
from superopt.operators.laws.collected import Law
from superopt.operators.symbolic import all_symbols
from superopt.substitution import symbols
from superopt.term import Term, variables
from superopt.verify.encode import encode_condition, encode_dim, encode_term
from superopt.verify.function_symbols import Z3, fact, function, head_of, size_function, sort, well_formed

_axioms: dict[Law, list[Any]] = {}


def law_axioms(law: Law) -> list[Any]:
    """A law for the solver: guarded by what makes both sides well formed, once for each side that can trigger it."""
    if law not in _axioms:
        with assuming():
            _axioms[law] = [
                a for a in (_triggered(law, law.left, law.right), _triggered(law, law.right, law.left)) if a is not None
            ]
    return _axioms[law]


def _triggered(law: Law, side: Term, other: Term) -> Any | None:
    """The law, instantiated wherever `side` occurs: None where it does not bind all that the law speaks of.

    In the trigger every size that is an expression becomes a fresh integer, bound by the match and equated in the
    guard, since matching knows nothing of arithmetic.
    """
    if side.is_variable or not set(variables(other)) <= set(variables(side)):
        return None
    tensors = {v: Z3.Const(f"?{v.label}", sort(v.type.rank)) for v in variables(side)}
    ints: dict[str, Any] = {}
    guard: list[Any] = []
    later: list[tuple[Any, Dim]] = []
    for v, c in tensors.items():
        for axis, dim in enumerate(v.shape):
            size, name = size_function(v.type.rank, axis)(c), symbol_name(dim)
            if name is None or name in ints:
                later.append((size, dim))
            else:
                ints[name] = size
    bound: list[Any] = []
    pattern = _pattern(side, tensors, ints, bound, guard, later)
    if pattern is None or not set(all_symbols(side, other)) <= set(ints):
        return None
    right = encode_term(other, tensors, ints)
    guard += [well_formed(side.type.rank)(pattern), well_formed(other.type.rank)(right)]
    guard += [encode_condition(c, ints) for c in law.conditions]
    guard += [fact(f.kind, f.of.type.rank)(tensors[f.of]) for f in law.facts]
    body = Z3.Implies(Z3.And(guard), pattern == right)
    return Z3.ForAll([*tensors.values(), *bound], body, patterns=[pattern])


def _pattern(
    term: Term,
    tensors: dict[Term, Any],
    ints: dict[str, Any],
    bound: list[Any],
    guard: list[Any],
    later: list[tuple[Any, Dim]],
) -> Any | None:
    """`term` with a bound integer for every size; equations that are not yet expressible are settled at the end."""

    def build(t: Term) -> Any:
        if t in tensors:
            return tensors[t]
        inputs = [build(i) for i in t.inputs]
        arguments = []
        for dim in t.operator.sizes():  # type: ignore[attr-defined]
            fresh = Z3.Int(f"e{len(bound)}")
            bound.append(fresh)
            arguments.append(fresh)
            name = symbol_name(dim)
            if name is not None and name not in ints:
                ints[name] = fresh
            else:
                later.append((fresh, dim))
        return function(head_of(t))(*arguments, *inputs) if arguments or inputs else function(head_of(t))

    pattern = build(term)
    for fresh, dim in later:
        if not symbols(dim) <= set(ints):
            return None
        guard.append(fresh == encode_dim(dim, ints))
    return pattern
