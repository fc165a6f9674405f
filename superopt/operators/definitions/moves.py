"""Transposes in moves of one axis each, which runtimes do by whole blocks.

onnxruntime 1.32 takes any other transpose that moves the last axis one element after the other: 2.4 ns each, and a move
of one axis 0.1 to 0.2. As patches are made of images, places are shuffled into channels or `0 3 2 1` is asked for, two
such moves take a sixth to an eleventh of the time. Its optimizer makes one transpose of two, whatever reshapes stand
between them, but for what gives a matrix. And it knows no move by axes of one place: `0 3 2 1` of 64 by 32 by 1 by 48
takes 333 µs, and 18 without that axis; heads are moved before the tokens of one text in 42, and in 25 without its axis.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from superopt.dim import Dim, Shape, product
from superopt.operators.layout import Transpose, reshaped
from superopt.operators.meanings import defines
from superopt.operators.rows import Rows
from superopt.relations import is_one
from superopt.term import Term

Move: TypeAlias = "tuple[Shape, tuple[int, ...]]"
"""Sizes, with as few axes as there may be, and how these are permuted."""

MOST = 3
"""More moves than these take as long as one element after the other."""


@defines("transpose", "in moves")
def in_moves(op: Transpose, x: Term) -> Term | None:
    """As few moves of one axis as there may be, the cheapest; where one will not do, and the last axis moves, or where
    there are axes of one place.
    """
    moves = _moves(x.shape, op.perm)
    if not moves:
        return None
    term = x
    for sizes, perm in moves:
        term = Transpose(perm)(reshaped(term if term is x else Rows()(term), sizes))
    return reshaped(term, tuple(x.shape[a] for a in op.perm))


def _moves(shape: Shape, perm: Sequence[int]) -> list[Move]:
    """The moves that a transpose is; none where it is one, leaves the last axis, or where they would be too many, but
    all at once without axes of one place.
    """
    sizes, merged = _merged(shape, perm)
    rank, kept = len(merged), _kept(merged)
    if rank < 2:  # what stays, but for its axes
        return []
    if not 2 <= rank - kept <= MOST or merged[-1] == rank - 1:
        known = len(perm) - _kept(perm) < 2 and perm[-1] != len(perm) - 1
        return [(sizes, merged)] if rank > kept and any(map(is_one, shape)) and not known else []
    perm = merged
    orders = (order for k in _increasing(perm, kept) for order in itertools.permutations(set(perm).difference(k)))
    ways = [list(_steps(sizes, perm, order)) for order in orders]
    return min(ways, key=lambda way: sum(_seconds(*move) for move in way))


def _kept(perm: Sequence[int]) -> int:
    """How many axes may stay where they are, at most."""
    return max((k for k in range(len(perm) + 1) if any(_increasing(perm, k))), default=0)


def _increasing(perm: Sequence[int], count: int) -> Iterator[tuple[int, ...]]:
    """So many axes that may stay where they are, since their order does."""
    return (axes for axes in itertools.combinations(perm, count) if list(axes) == sorted(axes))


def _steps(sizes: Sequence[Dim], perm: Sequence[int], order: Sequence[int]) -> Iterator[Move]:
    """The moves that bring one axis after the other to its place among those that are at theirs."""
    now, settled = sorted(perm), set(perm).difference(order)
    for axis in order:
        rest = [a for a in now if a != axis]
        before = [a for a in perm[: perm.index(axis)] if a in settled]
        at = max((rest.index(a) + 1 for a in before), default=0)
        then = [*rest[:at], axis, *rest[at:]]
        yield _merged([sizes[a] for a in now], [now.index(a) for a in then])
        now = then
        settled.add(axis)


def _merged(sizes: Sequence[Dim], perm: Sequence[int]) -> Move:
    """The same move with axes that stay together as one, and without those of one place."""
    groups: list[list[int]] = []
    counted = [a for a in range(len(perm)) if not is_one(sizes[a])]
    place = {axis: i for i, axis in enumerate(counted)}
    for axis in (place[a] for a in perm if a in place):
        if groups and groups[-1][-1] + 1 == axis:
            groups[-1].append(axis)
        else:
            groups.append([axis])
    ordered = sorted(groups)
    return tuple(product([sizes[counted[a]] for a in g]) for g in ordered), tuple(ordered.index(g) for g in groups)


def _seconds(sizes: Shape, perm: Sequence[int]) -> float:
    """What a move takes for each element, about, in nanoseconds: blocks of the last axis, or single elements."""
    last = sizes[-1]
    if perm[-1] != len(perm) - 1 or not isinstance(last, int):
        return 0.12
    return 0.08 + 4.0 / last
