"""A model written in other ways that may be faster by themselves, each optimized.

Nodes that are written otherwise, rows of a batch one after the other, and what can be computed apart from the turns of
loops. The model as it stands is what is left.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from superopt.errors import NoRoom, OutOfTime, SuperoptError
from superopt.onnx_io import understand
from superopt.search import branches
from superopt.search.accepting.trial import Attempt, Trial
from superopt.search.branches import Solve
from superopt.search.hoisting import hoisting
from superopt.search.report import Way
from superopt.search.turning import turning

LEAST_LEFT = 0.5
"""Where less of the time is left, what gained in one way is not tried in the next; and what gained nothing with nodes
written otherwise is not tried without.
"""

_LOG = logging.getLogger("superopt")

Found = tuple[Trial, Attempt]


class _Way(NamedTuple):
    """How a model is varied, what that is called where it does not gain, and what is said of it where it does."""

    vary: Callable[[Trial], Trial | None]
    called: str
    said: str


_WAYS: Mapping[Way, _Way] = {
    "rows": _Way(
        turning, "with rows computed one after the other", "; rows of the batch are computed one after the other"
    ),
    "apart": _Way(
        hoisting,
        "with what can be computed apart from its loops' turns",
        "; what turns of a loop need not compute one after the other is computed apart from them",
    ),
}


def attempted(trial: Trial, solve: Solve) -> Found:
    """What optimizing a model comes to with what is better for its branches in it, and with some of its nodes written
    otherwise, with rows of its batch one after the other, and with what can be computed apart from its loops' turns, if
    that is better; else without, also where nothing can be said of that. And the trial of which it tells. Raises what
    `solve` does.
    """
    if trial.program.plain is None:
        return _varied(trial, solve)
    found, _ = _or_warned("with nodes written otherwise", lambda: _varied(trial, solve))
    if found is not None and (found[1].accepted or found[1].interrupted or trial.left < LEAST_LEFT * trial.limit):
        return found
    try:
        return _varied(replace(trial, program=understand(trial.program.plain, plainly=True)), solve)
    except SuperoptError:
        if found is None:
            raise
        return found


def _varied(trial: Trial, solve: Solve) -> Found:
    """`attempted` of nodes as they are: in one way after the other and as they stand, while time is left or in that
    which is told; what gains most is the answer.
    """
    best, refused = None, ""
    for name, way in _WAYS.items():
        if trial.way not in (None, name) or (best is not None and _is_enough(trial, *best)):
            continue
        found, why = _or_warned(way.called, partial(_in_a_way, name, trial, solve))
        if found is not None and not found[1].accepted:
            why = found[1].reason
        refused += f"; and {way.called}: {why}" if why else ""
        if found is not None:
            best = found if best is None else _better(best, found)
    if best is not None and _is_enough(trial, *best):
        return best
    try:
        told, tried = branches.attempted(trial, solve, attempted)
    except SuperoptError as error:
        if best is None or not (best[1].accepted or isinstance(error, OutOfTime)):
            raise
        return best  # which says more of the original than that no time was left to search it again
    if not tried.accepted:
        tried.reason += refused
    whole = replace(told, way="whole") if tried.accepted else told, tried
    return whole if best is None else _better(whole, best)


def _in_a_way(name: Way, trial: Trial, solve: Solve) -> Found | None:
    """What optimizing a model comes to that a way makes of it, which says so; None where it makes none."""
    way, number = _WAYS[name], len(list(trial.folder.iterdir()))
    other = way.vary(trial)
    if other is None:
        return None
    told, tried = branches.attempted(other, solve, attempted)
    if tried.accepted:
        tried.reason += way.said
    if tried.accepted and tried.candidate is not None:  # the next is written there
        tried.candidate = tried.candidate.replace(trial.folder / f"{name}-{number}.onnx")
    return replace(told, way=name) if tried.accepted else told, tried


def _is_enough(trial: Trial, _: Trial, tried: Attempt) -> bool:
    """Whether no other way need be tried."""
    is_late = trial.left < LEAST_LEFT * trial.limit
    return tried.interrupted or (tried.accepted and (trial.way is not None or is_late))


def _better(one: Found, other: Found) -> Found:
    """That which gains more, the first of equals."""
    return other if _gain(other[1]) > _gain(one[1]) else one


def _gain(tried: Attempt) -> float:
    """How many times less a candidate was measured to take, where it is the answer."""
    if not tried.accepted:
        return 0.0
    if tried.weighed is not None:
        return tried.weighed.original / max(tried.weighed.candidate, 1)
    return tried.pairs[0][1].ratio if tried.pairs else 1.0


def _or_warned(of: str, attempt: Callable[[], Found | None]) -> tuple[Found | None, str]:
    """What an attempt comes to, or else why it does not, of which is warned: what is about the original is said of that
    again.
    """
    try:
        return attempt(), ""
    except (OutOfTime, NoRoom):
        raise
    except SuperoptError as error:
        _LOG.warning("%s, %s", of, error)
        return None, str(error)
