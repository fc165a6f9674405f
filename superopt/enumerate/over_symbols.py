"""Terms made anew over symbols: every size becomes a symbol of its own.

Cuts stay where they are between what was joined, and a reshape regroups the axes that it did.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

from superopt.dim import Dim, Shape, product, symbol
from superopt.enumerate.generality import CONSTANTS, Generality, shared_places
from superopt.errors import ShapeError
from superopt.operators.declared import Declared
from superopt.operators.layout import Concat, Expand, Reshape
from superopt.operators.picks import Slice
from superopt.term import Term, Variable, make, subterms, variable


def with_symbols(roots: tuple[Term, ...], generality: Generality) -> tuple[Term, ...]:
    """The terms made anew, bottom up, over symbols."""
    done: dict[Term, Term] = {}
    fresh = itertools.count()
    shared = shared_places(roots)
    for term in subterms(*roots):
        op = term.operator
        if isinstance(op, Variable):
            dims = [1 if d == 1 and not generality.ones else symbol(f"{op.label}{i}") for i, d in enumerate(term.shape)]
            done[term] = variable(op.label, dims)
            continue
        assert isinstance(op, Declared)
        # Each use of a broadcast has a shape of its own: two that are equal at the sizes found need not be in general.
        inputs = [
            _spread(i.operator, done[i], fresh, generality) if isinstance(i.operator, Expand) else done[i]
            for i in term.inputs
        ]
        if isinstance(op, Expand):
            done[term] = inputs[0]  # what is broadcast; each use has a shape of its own
            continue
        if isinstance(op, Reshape):
            sizes = list(_regrouped(_numbers(term.inputs[0].shape), inputs[0].shape, _numbers(op.to)))
        else:
            found = dict(_cuts(term.inputs[0], op.axis, done)) if generality.cuts and isinstance(op, Slice) else {}
            of_term = generality if inputs else CONSTANTS
            stays = of_term.staying(term, shared)
            sizes = [
                found.get(d, d if kept else symbol(f"{name}_{d}"))
                for name, d, kept in zip(generality.names(op, shared), op.sizes(), stays, strict=True)
            ]
        done[term] = make(op.with_sizes(sizes), inputs)
    return tuple(
        _spread(r.operator, done[r], fresh, generality) if isinstance(r.operator, Expand) else done[r] for r in roots
    )


def _cuts(term: Term, axis: int, general: Mapping[Term, Term]) -> Iterator[tuple[Dim, Dim]]:
    """Where a term can be cut along an axis so that nothing joined before is cut apart: at the size found, and over
    symbols. What is not a concat has the cuts of its inputs, along axes that are as long.
    """
    yield 0, 0
    op = term.operator
    if isinstance(op, Concat) and op.axis == axis:
        left, right = term.inputs
        yield from _cuts(left, axis, general)
        for found, symbolic in _cuts(right, axis, general):
            yield left.shape[axis] + found, general[left].shape[axis] + symbolic
    elif not term.is_variable:
        for i in term.inputs:
            for a, d in enumerate(i.shape if i in general else ()):
                if d == term.shape[axis]:
                    yield from _cuts(i, a, general)
    if term in general and len(general[term].shape) > axis:
        yield term.shape[axis], general[term].shape[axis]


def _spread(op: Expand, x: Term, fresh: Iterator[int], generality: Generality) -> Term:
    to = (1 if d == 1 and not generality.ones else symbol(f"_to{next(fresh)}") for d in op.to)
    return make(Expand(op.axes, tuple(to)), (x,))


def _regrouped(found: tuple[int, ...], general: Shape, to: Sequence[int]) -> Iterator[Dim]:
    """The shape of a reshape that merges neighbouring axes and splits others, over the general sizes.

    What an axis is split into are symbols, equal ones for equal sizes: the size of the axis follows. Raises
    `ShapeError` where no groups of neighbours on both sides are of one size.
    """
    place, rest = 0, list(to)
    while rest:
        taken, given = [place], [rest.pop(0)]
        if given == [1] and found[place : place + 1] != (1,):
            yield 1
            continue
        while (have := math.prod(found[i] for i in taken)) != (want := math.prod(given)):
            if have < want and taken[-1] + 1 < len(found):
                taken.append(taken[-1] + 1)
            elif have > want and rest:
                given.append(rest.pop(0))
            else:
                raise ShapeError(f"a reshape of {found} to {to} does not regroup axes")
        place = taken[-1] + 1
        if len(given) == 1:
            yield product([general[i] for i in taken])
        else:
            yield from (d if d == 1 else symbol(f"part{d}") for d in given)


def _numbers(shape: Shape) -> tuple[int, ...]:
    return tuple(d for d in shape if isinstance(d, int))
