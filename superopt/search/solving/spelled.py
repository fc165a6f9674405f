"""What to search without, where a candidate differs from its original.

A spelling (`operators/definitions/spellings.py`) equals its operator wherever it gives a number: a softmax without its
shift overflows, the logarithm of a share too small is infinite. Where an output shows that, the original's is asked
for. Some definitions round more than their operators, and what some finders make spreads what is no number: mostly
nothing shows of that, and where it does they are no gain. So do products with waves: they add up as many numbers as
there are, where a fast transform does so in a few steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from superopt.operators.fourier import Dft, Stft
from superopt.operators.meanings import FURTHER_DEFINITIONS, SPELLINGS
from superopt.search.rewriting.finders import FINDERS
from superopt.search.rewriting.rewrites import Fold, Rewrite, Unfold
from superopt.search.strategies.found import Solved

TRANSFORMS = (Dft.name, Stft.name)
"""Operators whose own definitions round more than they do."""


def may_differ(cover: Sequence[Solved]) -> bool:
    """Whether some of what was found reads a spelling as its operator, rounds more, or spreads what is no number."""
    names = _names()
    return any(step.name in names for s in cover if s.gain > 1.0 for step in s.winner.steps)


def without_differences(rewrites: Iterable[Rewrite]) -> list[Rewrite]:
    """Those that leave what is spelled out as it is, round no more, and spread nothing."""
    names = _names()
    return [r for r in rewrites if r.name not in names]


def _names() -> set[str]:
    further = (name for name, meaning in FURTHER_DEFINITIONS.items() if meaning.rounds)
    rounding = {Unfold(name).name for name in (*TRANSFORMS, *further)}
    spreading = {finder.name for finder in FINDERS if finder.spreads}
    return rounding | spreading | {Fold(spelling).name for spelling in SPELLINGS}
