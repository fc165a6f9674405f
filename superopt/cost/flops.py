"""Floating-point operations of terms, by what the operators declare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from superopt.cost.sizes import concretize
from superopt.operators import Declared
from superopt.operators.layout import Expand
from superopt.term import REAL, Graph, Term, Type, subterms, variables


def flops(roots: Sequence[Term], sizes: Mapping[str, int] | None = None) -> int:
    """The operations that computing these terms takes; what is made of constants is folded, and free.

    Symbols are replaced by `sizes`, as where graphs are timed. Raises `ShapeError` where those do not fit.
    """
    sized = concretize(Graph(tuple(variables(*roots)), tuple(roots)), sizes or {})
    return _total(sized.outputs, frozenset())


def is_floating(type_: Type) -> bool:
    """Whether a tensor holds floating-point numbers, of whatever width."""
    return type_.dtype == REAL or "float" in type_.dtype


def _total(roots: Sequence[Term], given: frozenset[Term]) -> int:
    return sum(_own(t) for t in subterms(*roots, known=given) if not (t.is_variable or t.constant))


def _own(term: Term) -> int:
    op = term.operator
    if isinstance(op, Expand):
        return 0  # whoever reads the result repeats the input by itself
    if not any(is_floating(t.type) for t in (term, *term.inputs)):
        return 0  # sizes and indices
    assert isinstance(op, Declared), f"{op} is not declared"
    if type(op).flops is Declared.flops:
        # A composite operator takes what it means, and of several ways to compute that the shortest.
        meanings = [m for m in op.definitions(*term.inputs) if m is not term]
        if meanings:
            return min(_total([m], frozenset(term.inputs)) for m in meanings)
    count = op.flops(term.shape, *(i.shape for i in term.inputs))
    assert isinstance(count, int), f"{count} is still symbolic"
    return count
