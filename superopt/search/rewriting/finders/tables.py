"""Rows of several tables that are joined, looked up at once: the embeddings of many features.

A recommender looks each of two dozen features up in a table of its own, and joins what it finds: for one user that is
two small operators a feature, and the time of a small operator is that of its start. Of tables of equal width one is
made, below each other, and all rows are taken by one Gather (`operators/lookups.py`). A rewrite that joins two would
have to meet them side by side, which a chain of concats has only at its end; so the whole chain is looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import groupby, pairwise
from typing import NamedTuple

from superopt.dim import Dim, Shape, product
from superopt.operators.chains import joined, viewed
from superopt.operators.layout import Concat, reshaped
from superopt.operators.lookups import MOST_ROWS, Lookups
from superopt.operators.nodes import concrete
from superopt.operators.picks import Slice, Take
from superopt.operators.rearrange import Gather
from superopt.relations import are_equal, equal_shapes
from superopt.search.rewriting.finders.fewer import Fewer
from superopt.term import Term, make

LEAST = 4
"""Of fewer tables, what is computed of the indices takes as long."""

INDICES = ("int64", "int32")
"""The types of indices."""


class Lookup(NamedTuple):
    """A row of a table for each of some indices, which are a column: their last axis has one place."""

    table: Term
    column: Term


class LookingUp(Fewer):
    """Finds what is looked up in several tables, and joined."""

    name = "looked up at once"
    heads = (Concat,)

    def may_be(self, term: Term) -> bool:
        """Whether it joins something that is looked up, as far as its last part tells, or the one before."""
        return any(_looks_up(p) is not None for p in joined(term)[-LEAST:])

    def made(self, term: Term) -> Term | None:
        """The chain, with each run of lookups that stand beside each other as one."""
        op = term.operator
        assert isinstance(op, Concat)
        parts = joined(term)
        if (wider := _of_wider_rows(parts, op.axis)) is not None:
            return wider
        runs = [(key, [part for _, part in run]) for key, run in groupby(_keyed(parts, op.axis), key=lambda k: k[0])]
        if not any(key is not None and len(run) >= LEAST for key, run in runs):
            return None
        found: list[Term] = []
        for key, run in runs:
            found += [_at_once(run, op.axis)] if key is not None and len(run) >= LEAST else run
        return reduce(op, found)


def _of_wider_rows(parts: Sequence[Term], axis: int) -> Term | None:
    """What the same indices look up in tables of one shape, joined along the last axis of these: in one table of rows
    that are joined, parts of which are taken in the order of the tables. Field-aware factorization machines (Juan et
    al. 2016) look all features up in a table for each of them. None of others.
    """
    found = [f for part in parts if isinstance(part.operator, Gather) and (f := _looks_up(part)) is not None]
    if len(found) < max(LEAST, len(parts)) or any(index is not found[0][1] for _, index in found):
        return None
    (*before, each, width), tables, count = parts[0].shape, [table for table, _ in found], len(found)
    alike = all(equal_shapes(table.shape, tables[0].shape) for table in tables)
    if axis != len(before) or not alike or not isinstance(each, int):
        return None
    rows = Gather(0)(reduce(Concat(1), tables), found[0][1])
    places = tuple(place * count + table for table in range(count) for place in range(each))
    return Take(axis, places)(reshaped(rows, (*before, each * count, width)))


def _keyed(parts: Sequence[Term], axis: int) -> list[tuple[tuple[str, Dim, Shape] | None, Term]]:
    """Each part with what those must have in common that are looked up at once: the types, the width of the tables, and
    how many indices there are. None for what is no lookup whose rows are joined along that axis.
    """
    keyed: list[tuple[tuple[str, Dim, Shape] | None, Term]] = []
    for part in parts:
        found = _lookup(part)
        joins = found is not None and are_equal(product(part.shape[axis:]), found.table.shape[1])
        key = (
            (f"{found.table.type.dtype} by {found.column.type.dtype}", found.table.shape[1], found.column.shape)
            if found and joins
            else None
        )
        keyed.append((key, part))
    return keyed


def _looks_up(part: Term) -> tuple[Term, Term] | None:
    """The table and the indices of a part that looks up; None where it does not, or in what is computed."""
    gather = viewed(part)
    if not isinstance(gather.operator, Gather) or gather.operator.axis != 0:
        return None
    table, index = gather.inputs
    if not table.constant or table.type.rank != 2 or not isinstance(table.shape[0], int):
        return None
    if index.constant or index.type.dtype not in INDICES:
        return None
    return table, index


def _lookup(part: Term) -> Lookup | None:
    """What a part looks up, by as many indices as it has rows; None where it does not. Raises what making terms does,
    as where indices may be none.
    """
    if (found := _looks_up(part)) is None:
        return None
    table, index = found
    picked = viewed(index)
    at = picked.operator
    if isinstance(at, Slice) and at.axis == picked.type.rank - 1 and are_equal(picked.shape[-1], 1):
        return Lookup(table, picked)
    return Lookup(table, reshaped(index, (*index.shape, 1)))


def _at_once(parts: Sequence[Term], axis: int) -> Term:
    """Some lookups as one, in the shape that they have where they are joined."""
    found = [lookup for lookup in map(_lookup, parts) if lookup is not None]
    rows = concrete(tuple(lookup.table.shape[0] for lookup in found), "tables")
    if sum(rows) > MOST_ROWS:
        return reduce(Concat(axis), parts)
    tables = reduce(Concat(0), [lookup.table for lookup in found])
    indices = _side_by_side([lookup.column for lookup in found])
    width = sum((part.shape[axis] for part in parts[1:]), parts[0].shape[axis])
    first = parts[0].shape
    return reshaped(make(Lookups(rows), (tables, indices)), (*first[:axis], width, *first[axis + 1 :]))


def _side_by_side(columns: Sequence[Term]) -> Term:
    """Columns of indices joined along their last axis; those that follow each other in one tensor, as a slice of it."""
    axis = columns[0].type.rank - 1
    if all(isinstance(c.operator, Slice) and c.inputs[0] is columns[0].inputs[0] for c in columns):
        starts = [c.operator.start for c in columns if isinstance(c.operator, Slice)]
        if all(are_equal(b, a + 1) for a, b in pairwise(starts)):
            (whole,) = columns[0].inputs
            full = are_equal(starts[0], 0) and are_equal(whole.shape[axis], len(columns))
            return whole if full else Slice(axis, starts[0], starts[-1] + 1)(whole)
    return reduce(Concat(axis), columns)
