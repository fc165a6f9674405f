"""Places of rows that change with their neighbours, as a product with a matrix of zeros and ones.

Rotary embeddings of neighbouring pairs (RoFormer, Su et al. 2021; GPT-J, EVA) write of each row `−x₁, x₀, −x₃, x₂, …`:
the odd places and the even ones are taken apart, one of the two is negated, and they are stacked and shown as rows
again. Runtimes copy each number by itself, four times, and a product with one matrix for all rows is less; of the
layer before it the product may become part. Numbers stand for places here, and are moved as these are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from superopt.arithmetic.carrier import Array
from superopt.operators.constant import matrix
from superopt.operators.differences import Neg
from superopt.operators.layout import Concat, Reshape
from superopt.operators.picks import Every, Slice, Take
from superopt.relations import are_equal
from superopt.search.rewriting.finders.fewer import Fewer
from superopt.search.rewriting.finders.gathered import Product, multiplied
from superopt.term import Term

LARGEST = 64
"""Places of a row, at most: of longer ones a product is more than copies."""

MOST = 16
"""Operators below each other, at most."""


class Places(NamedTuple):
    """What stands at each place of the last axes of a term: of which row, which place plus one, or minus that."""

    row: Term
    places: Array
    apart: bool = False
    """Whether any was taken apart from its neighbours."""


class Exchanging(Fewer):
    """Finds rows made of the places of another row."""

    name = "places exchanged by a product"
    spreads = True
    heads = (Reshape,)

    def may_be(self, term: Term) -> bool:
        """Whether it shows what is stacked as short rows."""
        last = term.shape[-1] if term.type.rank > 1 and isinstance(term.inputs[0].operator, Concat) else None
        return isinstance(last, int) and 1 < last <= LARGEST

    def made(self, term: Term) -> Term | None:
        """A product with a matrix of ones; None where neighbours stay together, or several rows go into one."""
        found = _places(term, term.type.rank - 1, MOST)
        if found is None or not found.apart:
            return None
        size = found.row.shape[-1]
        if not isinstance(size, int) or size > LARGEST:
            return None
        entries = np.zeros((size, len(found.places)), np.int64)
        entries[abs(found.places) - 1, range(len(found.places))] = np.sign(found.places)
        return multiplied(Product(found.row, term.type.rank - 1, matrix(entries.tolist())))


def _places(x: Term, before: int, depth: int) -> Places | None:
    """What stands at each place behind the axes before, which stay; None where that is not of one row."""
    op, sizes = x.operator, [d for d in x.shape[before:] if isinstance(d, int)]
    if not depth or x.constant or before + len(sizes) < x.type.rank:
        return None
    if isinstance(op, Neg) and (found := _places(x.inputs[0], before, depth - 1)):
        return found._replace(places=-found.places)
    if isinstance(op, Concat) and op.axis >= before:
        return _joined([_places(i, before, depth - 1) for i in x.inputs], op.axis - before)
    if isinstance(op, Reshape) and _starts_alike(x, x.inputs[0], before):
        found = _places(x.inputs[0], before, depth - 1)
        return None if found is None else found._replace(places=found.places.reshape(sizes))
    if isinstance(op, Slice | Every | Take) and op.axis >= before:
        found = _places(x.inputs[0], before, depth - 1)
        return None if found is None else _picked(found, op, op.axis - before)
    return Places(x, np.arange(1, *(d + 1 for d in sizes))) if len(sizes) == 1 else None


def _joined(parts: Sequence[Places | None], axis: int) -> Places | None:
    """Places of the same row beside each other."""
    known = [p for p in parts if p is not None]
    if len(known) < len(parts) or any(p.row is not known[0].row for p in known):
        return None
    return Places(known[0].row, np.concatenate([p.places for p in known], axis), any(p.apart for p in known))


def _picked(found: Places, op: Slice | Every | Take, axis: int) -> Places | None:
    """Some of the places along an axis."""
    if isinstance(op, Take):
        indices = list(op.indices)
    else:
        start, stop, step = (op.start, op.stop, 1) if isinstance(op, Slice) else (0, found.places.shape[axis], op.step)
        if not isinstance(start, int) or not isinstance(stop, int) or not isinstance(step, int):
            return None
        indices = list(range(start, stop, step))
    return Places(found.row, found.places.take(indices, axis), found.apart or not isinstance(op, Slice))


def _starts_alike(x: Term, y: Term, before: int) -> bool:
    """Whether the first axes of two terms are the same."""
    ranks = min(x.type.rank, y.type.rank) > before
    return ranks and all(are_equal(a, b) for a, b in zip(x.shape[:before], y.shape[:before], strict=True))
