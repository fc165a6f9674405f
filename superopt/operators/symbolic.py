"""Terms over symbolic sizes: the symbols in them, when they are well formed, and the same at other sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from weakref import WeakKeyDictionary

from superopt.demands import assuming
from superopt.dim import Condition, Dim, symbol_name
from superopt.operators.declared import Declared
from superopt.substitution import substitute, symbols
from superopt.term import Term, Variable, make, size_symbols, subterms, variable


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
