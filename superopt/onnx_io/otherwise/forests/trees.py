"""Trees of soft decisions, told by the products of chances that are their paths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from superopt.arithmetic.carrier import Array
from superopt.onnx_io.otherwise.forests.literals import Literal
from superopt.onnx_io.otherwise.forests.places import UnreadError

DEEPEST = 12
"""Of deeper trees nothing is told."""


class Tree(NamedTuple):
    """The chances at each level, of which the places are told by the turns on the way, and what is at each leaf."""

    levels: list[list[Literal]]
    leaves: Array


def apart(paths: Sequence[frozenset[Literal] | None]) -> list[list[int]]:
    """Which paths are those of one tree: they begin with the same chance. Raises `UnreadError`."""
    groups, at = list[list[int]](), dict[tuple[str, int], int]()
    for i, path in enumerate(paths):
        if not path:
            raise UnreadError
        keys = [(x.of, x.column) for x in path]
        known = {at[key] for key in keys if key in at}
        if len(known) > 1:
            raise UnreadError
        group = known.pop() if known else len(groups)
        if group == len(groups):
            groups.append([])
        groups[group].append(i)
        at.update(dict.fromkeys(keys, group))
    return groups


def tree_of(paths: Sequence[tuple[frozenset[Literal] | None, Array]]) -> Tree:
    """The tree of which these are the paths, with what is at their ends. Raises `UnreadError`."""
    depth = len(paths).bit_length() - 1
    if len(paths) != 2**depth or not 0 < depth <= DEEPEST:
        raise UnreadError
    levels: list[list[Literal]] = [[] for _ in range(depth)]
    places = [[(set(path or ()), leaf) for path, leaf in paths]]
    for level in levels:
        following: list[list[tuple[set[Literal], Array]]] = [[] for _ in range(2 * len(places))]
        for i, several in enumerate(places):
            chance = _first(several)
            level.append(chance)
            for path, leaf in several:
                left = chance in path
                following[i if left else i + len(places)].append((path - {chance, _left(chance)}, leaf))
        places = following
    if any(len(several) != 1 or several[0][0] for several in places):
        raise UnreadError
    return Tree(levels, np.stack([several[0][1] for several in places]))


def _first(paths: Sequence[tuple[set[Literal], Array]]) -> Literal:
    """The chance with which all of some paths begin, half of them by what is left of it. Raises `UnreadError`."""
    common = {x._replace(is_left=False) for x in paths[0][0]} if paths else set[Literal]()
    for path, _ in paths:
        common &= {x._replace(is_left=False) for x in path}
    for chance in sorted(common):
        if sum(chance in path for path, _ in paths) * 2 == len(paths):
            return chance
    raise UnreadError


def _left(chance: Literal) -> Literal:
    return chance._replace(is_left=True)
