"""What graphs take: how many operators, and how many operations at sizes of which some are small and some large."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from superopt.dim import Dim
from superopt.operators.declared import Declared
from superopt.operators.layout import Expand
from superopt.operators.symbolic import all_symbols
from superopt.substitution import substitute
from superopt.term import Term, running, subterms

SMALL, MIDDLE, LARGE = 2, 8, 32
"""The sizes at which work is compared, see `kinds_of_sizes`."""


def operators(state: Sequence[Term]) -> int:
    """The number of operators of a graph that run, but for broadcasts: what is made of constants costs nothing."""
    return sum(not isinstance(t.operator, Expand) for t in running(*state))


def kinds_of_sizes(state: Sequence[Term], ones: Iterable[str] = ()) -> list[dict[str, int]]:
    """Values for all symbols: all the same, every other small and large, in order of name, and each small alone; but of
    some always 1. Those at which the terms have no elements are left out.
    """
    dims = {dim for t in subterms(*state) for dim in t.shape}
    kinds = [kind | dict.fromkeys(ones, 1) for kind in all_kinds(state)]
    return [kind for kind in kinds if all(_is_positive(d, kind) for d in dims)]


def all_kinds(state: Sequence[Term]) -> list[dict[str, int]]:
    """Those of `kinds_of_sizes` where no symbol is always 1, with those at which the terms have no elements."""
    names = sorted(set(all_symbols(*state)))
    each = [dict.fromkeys(names, LARGE) | {name: SMALL} for name in names]
    turns = [{name: (SMALL, LARGE)[i % 2 == first] for i, name in enumerate(names)} for first in (0, 1)]
    return [dict.fromkeys(names, MIDDLE), *turns, *each]


def _is_positive(dim: Dim, kind: Mapping[str, int]) -> bool:
    size = substitute(dim, kind)
    return isinstance(size, int) and size > 0


def work(
    state: Sequence[Term], kinds: Sequence[Mapping[str, int]], counted: dict[Term, list[int]] | None = None
) -> list[int]:
    """The operations of the contractions in a graph, at each of the sizes given. What is `counted` of terms at these
    sizes is remembered.
    """
    counted = {} if counted is None else counted
    terms = subterms(*state)
    for term in terms:
        if term not in counted:
            dim = _contracting(term)
            sizes = [dim] * len(kinds) if isinstance(dim, int) else [substitute(dim, kind) for kind in kinds]
            counted[term] = [size if isinstance(size, int) else 0 for size in sizes]
    return [sum(counted[term][i] for term in terms) for i in range(len(kinds))]


def _contracting(term: Term) -> Dim:
    op = term.operator
    if not isinstance(op, Declared) or len(op.linear) < 2 or type(op).flops is Declared.flops:
        return 0
    return op.flops(term.shape, *(i.shape for i in term.inputs))
