"""How many graphs an enumeration stands for, though it evaluates far fewer."""

from __future__ import annotations

from superopt.enumerate.table import Table


def represented(table: Table, most: int) -> int:
    """The number of expression trees of up to `most` operators over a family's variables and constants.

    Each has the value of a term that was kept, since a term stands for all of its value. Graphs in which an operator
    has several users are more trees than one, so these come on top.
    """
    trees: list[dict[int, int]] = [{} for _ in range(most + 1)]
    for leaf in table.leaves:
        type_ = table.types.number(leaf.shape)
        trees[0][type_] = trees[0].get(type_, 0) + 1
    _spread(table, trees[0])
    for level in range(1, most + 1):
        for a in table.types.applications:
            if a.free:
                continue
            for la in range(level):
                lb = level - 1 - la
                if len(a.inputs) == 1:
                    count = trees[la].get(a.inputs[0], 0) if lb == 0 else 0
                else:
                    count = trees[la].get(a.inputs[0], 0) * trees[lb].get(a.inputs[1], 0)
                if count:
                    trees[level][a.result] = trees[level].get(a.result, 0) + count
        _spread(table, trees[level])
    return sum(sum(level.values()) for level in trees)


def _spread(table: Table, trees: dict[int, int]) -> None:
    """Add what counts as no operator, once over each tree."""
    for a in table.types.applications:
        if a.free and trees.get(a.inputs[0]):
            trees[a.result] = trees.get(a.result, 0) + trees[a.inputs[0]]
