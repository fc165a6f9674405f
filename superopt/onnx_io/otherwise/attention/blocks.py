"""Queries of attention in blocks, each with the keys that one of them sees: how they are best parted."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import numpy as np

from superopt.arithmetic.carrier import Array
from superopt.dim import Shape
from superopt.substitution import elements

SCORE_NS, NUMBER_NS, BLOCK_NS = 3.0, 1.4, 8000.0
"""What a score takes, about, with both products and the softmax; what a number of each key and value does that is
copied into a block; and what a block does beyond that.
"""

WORTH = 0.8
"""Of the time without blocks, what blocks are to take at most."""

FINEST = 64
"""Queries are parted in no more blocks than this."""


class Block(NamedTuple):
    """Some queries, and the keys that they see."""

    queries: slice
    keys: slice

    @property
    def scores(self) -> int:
        """How many are computed in it."""
        queries, keys = (int(part.stop) - int(part.start) for part in self)
        return queries * keys


class Costs(NamedTuple):
    """What a block takes beside its scores, in scores: for itself, and for each of its keys where it has not all."""

    start: float
    key: float

    def of(self, block: Block, keys: int) -> float:
        """What a block takes, where there are so many keys."""
        own = block.keys.stop - block.keys.start
        return block.scores + self.start + (self.key * own if own < keys else 0.0)


class Seen(NamedTuple):
    """The first key that each query sees, and the one behind the last, of so many keys."""

    first: Array
    last: Array
    keys: int

    @classmethod
    def of(cls, seen: Array) -> Seen:
        """By a matrix of what each query sees, which is anything."""
        return cls(seen.argmax(1), seen.shape[1] - seen[:, ::-1].argmax(1), seen.shape[1])


def blocks_of(seen: Seen, costs: Costs) -> list[Block]:
    """The blocks that take least, of all whose ends are at so many places: by what is best before each of these."""
    count = len(seen.first)
    places = [*range(0, count, -(-count // FINEST)), count]
    first = np.minimum.reduceat(seen.first, places[:-1]).tolist()
    last = np.maximum.reduceat(seen.last, places[:-1]).tolist()
    best: list[tuple[float, list[Block]]] = [(0.0, [])]
    for end in range(1, len(places)):
        found, low, high = [], seen.keys, 0
        for begin in reversed(range(end)):
            low, high = min(low, first[begin]), max(high, last[begin])
            block = Block(slice(places[begin], places[end]), slice(low, high))
            found.append((best[begin][0] + costs.of(block, seen.keys), begin, block))
        taken, begin, block = min(found, key=lambda each: each[0])
        best.append((taken, [*best[begin][1], block]))
    return best[-1][1]


def worth(hidden: Array, stack: Shape, values: Shape) -> list[Block] | None:
    """The blocks of attention of which these scores count for nothing, for a stack of heads and values of this shape;
    None where they do not take clearly less, and where a query sees nothing: its shares are alike.
    """
    if hidden.all(1).any():
        return None
    many = prod(max(elements((dim,)), 1) for dim in stack)  # n - 1 are none of one
    costs = Costs(BLOCK_NS / SCORE_NS / many, NUMBER_NS / SCORE_NS * elements(values[-1:]))
    seen = Seen.of(~hidden)
    if (seen.last - seen.first).sum() > WORTH * hidden.size:  # were each query a block of its own
        return None
    blocks = blocks_of(seen, costs)
    taken = sum(costs.of(block, hidden.shape[1]) for block in blocks)
    return blocks if taken <= WORTH * hidden.size else None
