"""What to search without, where a candidate gives numbers for which its original gives none.

A spelling (`operators/spellings.py`) equals its operator wherever it gives a number: a softmax without its shift
overflows, the logarithm of a share too small is infinite. Where an output shows that, the original's is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from superopt.operators.meanings import SPELLINGS
from superopt.search.rewriting.rewrites import Fold, Rewrite
from superopt.search.strategies.found import Solved


def read_as_operators(cover: Sequence[Solved]) -> bool:
    """Whether some of what was found reads a spelling as its operator."""
    names = _names()
    return any(step.name in names for s in cover if s.gain > 1.0 for step in s.winner.steps)


def without_spellings(rewrites: Iterable[Rewrite]) -> list[Rewrite]:
    """Those that leave what is spelled out as it is."""
    names = _names()
    return [r for r in rewrites if r.name not in names]


def _names() -> set[str]:
    return {Fold(spelling).name for spelling in SPELLINGS}
