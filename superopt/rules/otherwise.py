"""What rules say that were found, stated of what models have: not found by themselves, and proved by the same laws."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from superopt.rules.parted import parted
from superopt.rules.rule import Rule
from superopt.rules.stacked import stacked


def otherwise(rules: Iterable[Rule]) -> Iterator[Rule]:
    """Of what is taken apart where a rule joins it, and of stacks of stacks where it is about stacks of matrices."""
    for rule in rules:
        yield from parted(rule)
        yield from stacked(rule)
