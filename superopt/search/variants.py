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
    """`attempted` of nodes as they are."""
    refused = ""
    for of, vary, said in (
        (_ROWS, turning, "rows of the batch are computed one after the other"),
        (_APART, hoisting, "what turns of a loop need not compute one after the other is computed apart from them"),
    ):

        def varied(vary: Callable[[Trial], Trial | None] = vary) -> Found | None:
            other = vary(trial)
            return None if other is None else branches.attempted(other, solve, attempted)

        found, why = _or_warned(of, varied)
        if found is not None:
            told, tried = found
            if tried.accepted:
                tried.reason += f"; {said}"
            if tried.accepted or tried.interrupted:
                return told, tried
            why = tried.reason
        refused += f"; and {of}: {why}" if why else ""
    told, tried = branches.attempted(trial, solve, attempted)
    if not tried.accepted:
        tried.reason += refused
    return told, tried


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
