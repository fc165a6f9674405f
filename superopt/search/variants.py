"""A model written in other ways that may be faster by themselves, each optimized: the first that gains is the answer.

Nodes that are written otherwise, rows of a batch one after the other, and what can be computed apart from the turns of
loops. The model as it stands is what is left.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from superopt.errors import NoRoom, OutOfTime, SuperoptError
from superopt.onnx_io import understand
from superopt.search import branches
from superopt.search.accepting.trial import Attempt, Trial
from superopt.search.branches import Solve
from superopt.search.hoisting import hoisting
from superopt.search.turning import turning

LEAST_LEFT = 0.5
"""Where less of the time is left, what gained nothing with nodes written otherwise is not tried without."""

_ROWS, _APART = "with rows computed one after the other", "with what can be computed apart from its loops' turns"
_LOG = logging.getLogger("superopt")

Found = tuple[Trial, Attempt]


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
    """`attempted` of nodes as they are. Where time is left, what rows gain one after the other is compared with what is
    found of all at once.
    """
    rows, refused = _in_a_way(_ROWS, turning, trial, solve, "rows of the batch are computed one after the other")
    enough = trial.in_turn or trial.left < LEAST_LEFT * trial.limit
    if rows is not None and (rows[1].interrupted or (rows[1].accepted and enough)):
        return rows
    if rows is not None:
        _set_aside(*rows)
    try:
        told, tried = _apart(trial, solve)
    except OutOfTime:
        if rows is None:
            raise
        return rows  # which says more of the original than that no time was left to search it again
    if rows is not None and rows[1].accepted and _gain(tried) <= _gain(rows[1]):
        return rows
    if not tried.accepted:
        tried.reason += refused
    return told, tried


def _set_aside(trial: Trial, tried: Attempt) -> None:
    """Let a candidate be where the next is not written."""
    if tried.accepted and tried.candidate is not None:
        tried.candidate = tried.candidate.replace(trial.folder / f"{trial.original.stem}-rows-better.onnx")


def _gain(tried: Attempt) -> float:
    """How many times faster a candidate was measured to be, where it is the answer."""
    return tried.pairs[0][1].ratio if tried.accepted and tried.pairs else 1.0


def _apart(trial: Trial, solve: Solve) -> Found:
    """`attempted` of all rows at once."""
    said = "what turns of a loop need not compute one after the other is computed apart from them"
    found, refused = _in_a_way(_APART, hoisting, trial, solve, said)
    if found is not None and (found[1].accepted or found[1].interrupted):
        return found
    told, tried = branches.attempted(trial, solve, attempted)
    if not tried.accepted:
        tried.reason += refused
    return told, tried


def _in_a_way(
    of: str, way: Callable[[Trial], Trial | None], trial: Trial, solve: Solve, said: str
) -> tuple[Found | None, str]:
    """What optimizing a model comes to that a way makes of it, which says so; and what is to be said where that is not
    the answer.
    """

    def varied() -> Found | None:
        other = way(trial)
        return None if other is None else branches.attempted(other, solve, attempted)

    found, why = _or_warned(of, varied)
    if found is not None and found[1].accepted:
        found[1].reason += f"; {said}"
    elif found is not None:
        why = found[1].reason
    return found, f"; and {of}: {why}" if why else ""


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
