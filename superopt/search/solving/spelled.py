"""What to search without, where a candidate differs from its original.

A spelling (`operators/definitions/spellings.py`) equals its operator wherever it gives a number: a softmax without its
shift overflows, the logarithm of a share too small is infinite. Where an output shows that, the original's is asked
for. And some definitions round more than their operators: mostly nothing shows of that, and where it does they are no
gain.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from superopt.operators.meanings import FURTHER_DEFINITIONS, SPELLINGS
from superopt.search.rewriting.rewrites import Fold, Rewrite, Unfold
from superopt.search.strategies.found import Solved


def may_differ(cover: Sequence[Solved]) -> bool:
    """Whether some of what was found reads a spelling as its operator, or rounds more."""
    names = _names()
    return any(step.name in names for s in cover if s.gain > 1.0 for step in s.winner.steps)


def without_differences(rewrites: Iterable[Rewrite]) -> list[Rewrite]:
    """Those that leave what is spelled out as it is, and round no more."""
    names = _names()
    return [r for r in rewrites if r.name not in names]


def _names() -> set[str]:
    rounding = {Unfold(name).name for name, meaning in FURTHER_DEFINITIONS.items() if meaning.rounds}
    return rounding | {Fold(spelling).name for spelling in SPELLINGS}
