"""An index of applications by their kind and the kinds of what they are applied to."""

from __future__ import annotations

import numpy as np

from superopt.arithmetic.carrier import Array
from superopt.enumerate.patterns import Node
from superopt.enumerate.rows import Rows
from superopt.enumerate.table import Table


class ByKinds:
    """Sorted twice, by the kind of the first input first and by that of the second: a pattern looks at few of all."""

    def __init__(self, table: Table, rows: Rows) -> None:
        kind, left, right = (
            np.where(known >= 0, kinds[np.maximum(known, 0)], -1) + 1
            for kinds, known in (
                (table.types.kind_of, rows.app),
                (table.kind, rows.left),
                (table.kind, rows.right),
            )
        )
        self._count = len(table.types.kinds) + 1
        keys = [self._key(kind, left, right), self._key(kind, right, left)]
        self._orders = [np.argsort(key, kind="stable") for key in keys]
        self._keys = [key[order] for key, order in zip(keys, self._orders, strict=True)]

    def _key(self, kind: Array, first: Array, second: Array) -> Array:
        # As wide as the bounds that are looked up: other numbers would be copied whole for each search.
        return (kind.astype(np.int64) * self._count + first) * self._count + second

    def nodes(self, pattern: Node) -> Array:
        """The applications of a pattern's kind to terms of the kinds of its inputs, in their order."""
        first, second = ([*(i.kind + 1 if isinstance(i, Node) else 0 for i in pattern.inputs), 0])[:2]
        turned = int(not first and second > 0)
        first, second = (second, first) if turned else (first, second)
        low = ((pattern.kind + 1) * self._count + first) * self._count + second
        width = 1 if second else self._count if first else self._count**2
        start, end = np.searchsorted(self._keys[turned], [low, low + width])
        return np.sort(self._orders[turned][start:end])
