"""A model written in other ways that may be faster by themselves, each optimized.

Nodes that are written otherwise, rows of a batch one after the other, floors below what is masked, and what can be
computed apart from the turns of loops. The model as it stands is what is left.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TypeVar, get_args

from superopt.errors import NoRoom, OutOfTime, SuperoptError, UsageError
from superopt.onnx_io import batch_size, bodies, fingerprint, is_masking, saturates_elsewhere, understand
from superopt.search import branches
from superopt.search.accepting.trial import Attempt, Trial
from superopt.search.branches import Solve
from superopt.search.flooring import flooring
from superopt.search.hoisting import hoisting
from superopt.search.report import Way
from superopt.search.sight import Seen
from superopt.search.solving.remembered import Memory
from superopt.search.suited import suited
from superopt.search.turning import turning

LEAST_LEFT, LEAST_AGAIN, LEAST_AT_ALL = 0.5, 0.3, 0.05
"""Where less of the time is left, what gained in one way is not tried in the next, and what gained nothing with nodes
written otherwise not without; where less is, what gained nothing is not tried with rows one after the other; and in no
other way where nothing could be compared any more: of 1.4 GB a candidate takes 7 s to be written.
"""

CLEARLY = 1.03
"""What is so many times faster at first sight is tried so first, or where that is not what is looked for; else last."""

LEAST_SURE = 0.1
"""Where less of the time is left and nothing gained, more may gain in another run."""

SATURATING = (
    "; it multiplies bytes without a sign by such with one, whose sums x86 processors without VNNI may cut short: "
    "optimize it on these for these"
)
"""What is to be known of a model that processors of another kind would compute otherwise."""

_LOG = logging.getLogger("superopt")
T = TypeVar("T")

Found = tuple[Trial, Attempt]

_CALLED: Mapping[Way, str] = {
    "rows": "with rows computed one after the other",
    "floored": "with a floor below what is masked",
    "apart": "with what can be computed apart from its loops' turns",
}
_SAID: Mapping[Way, str] = {
    "rows": "; rows of the batch are computed one after the other",
    "floored": "; what softmaxes give what is masked is next to nothing, and not too small for a number",
    "apart": "; of turns of a loop only what waits for the turn before stays, all else is computed apart from them",
    "whole": "",
}


def attempted(trial: Trial, solve: Solve, memory: Memory | None = None) -> Found:
    """What optimizing a model comes to with what is better for its branches in it, and with some of its nodes written
    otherwise, with rows of its batch one after the other, with a floor below what is masked, and with what can be
    computed apart from its loops' turns, if that is better; else without, also where nothing can be said of that. And
    the trial of which it tells. Where the memory holds in which way a model of this structure gained most, that is
    tried first. Nodes are written otherwise as it suits the runtime. Raises what `solve` does.
    """
    trial = suited(trial, memory)
    if trial.program.plain is None:
        return _varied(trial, solve, memory)
    found, _ = _or_warned("with nodes written otherwise", lambda: _varied(trial, solve, memory))
    if found is not None and (found[1].accepted or found[1].interrupted or trial.left < LEAST_LEFT * trial.limit):
        found[1].reason += SATURATING if found[1].accepted and saturates_elsewhere(found[0].program) else ""
        return found
    try:
        return _varied(replace(trial, program=understand(trial.program.plain, plainly=True)), solve, memory)
    except SuperoptError:
        if found is None:
            raise
        return found


def _varied(trial: Trial, solve: Solve, memory: Memory | None) -> Found:
    """`attempted` of nodes as they are: in one way after the other while time is left, or in that which is told or
    remembered; what gains most is the answer.
    """
    found, refused = dict[Way, Found](), ""
    recalled = _Recalled(memory, trial) if memory is not None and _may_vary(trial) else None
    told = trial.way or (recalled.way if recalled is not None else None)
    for name, written in _ways(trial if told == trial.way else replace(trial, way=told)):
        if found and _is_enough(trial, _best(found)[1], name, told):
            break
        attempt = partial(_in_a_way, name, written, solve)
        try:
            one, why = _or_warned(_CALLED[name], attempt) if name in _CALLED else (attempt(), "")
        except KeyboardInterrupt:
            if not found or not _best(found)[1].accepted:
                raise
            _best(found)[1].interrupted = True
            break
        except SuperoptError as error:
            if not found or not (_best(found)[1].accepted or isinstance(error, _SAYING_LESS)):
                raise _of_another(trial, error) from None
            break
        if one is not None:
            found[name] = one
            why = "" if name == "whole" or one[1].accepted else one[1].reason
        refused += f"; and {_CALLED[name]}: {why}" if why else ""
        if one is not None and one[1].interrupted:
            _best(found)[1].interrupted = True
            break
    best, tried = _best(found)
    if not tried.accepted:  # what is told is about the model as it stands
        best, tried = found.get("whole", (trial, tried))
        tried.reason += refused if "whole" in found else ""
    if recalled is not None and not tried.interrupted and (tried.accepted or trial.left > LEAST_SURE * trial.limit):
        recalled.keep(best.way or "whole")
    return best, tried


_SAYING_LESS = (OutOfTime, UsageError)
"""Errors of a later way that say less of the original than what came of the first: that no time is left, or that of
what is to be put in again nothing fits.
"""


def _of_another(trial: Trial, error: SuperoptError) -> SuperoptError:
    """What is to be said where a model cannot be written in the way that is told."""
    if trial.way is None or trial.way not in _CALLED or not isinstance(error, UsageError):
        return error
    why = f"the report is of a model {_CALLED[trial.way]}, which this one cannot be at its sizes"
    return UsageError(f"{why}; give those of the report by --shape, or optimize this one")


def _may_vary(trial: Trial) -> bool:
    """Whether there may be several ways to write a model."""
    rows = batch_size(trial.program, trial.bench.sizes) if trial.objective.by_rows else None
    is_masked = is_masking(trial.program, bool(trial.inputs))
    return not trial.is_branch and (rows is not None or bool(bodies(trial.program)) or is_masked)


def _ways(trial: Trial) -> list[tuple[Way, Callable[[], Trial | None]]]:
    """In which ways the model is tried, in their order, and what writes it so; last, or before what does not gain by
    itself, as it stands.
    """
    ways: list[tuple[Way, Callable[[], Trial | None]]]
    ways = [("apart", partial(hoisting, trial)), ("whole", lambda: trial)]
    sights: list[tuple[Way, Callable[[Trial], Seen | None]]] = [("floored", flooring), ("rows", turning)]
    for name, written in sights:
        seen = _or_warned(_CALLED[name], partial(written, trial))[0] if trial.way in (None, name) else None
        if seen is not None:
            is_first = seen.ratio >= CLEARLY or trial.objective.better != "faster"
            ways.insert(0 if is_first else len(ways), (name, partial(_same, seen.trial)))
    return [(name, written) for name, written in ways if trial.way in (None, name) or name == "whole"]


def _same(trial: Trial) -> Trial:
    return trial


class _Recalled:
    """In which way models of a trial's structure gained most, at its sizes and of those that there was time for, as far
    as a memory holds that; as they stand where none gained.
    """

    def __init__(self, memory: Memory, trial: Trial) -> None:
        facts = memory.search_digest, memory.limit, "way", fingerprint(trial.program.model), *map(str, trial.settings)
        self._memory, self._asked = memory, hashlib.sha256(repr(facts).encode()).hexdigest()[:32]
        known = memory.table.answer(memory.key, self._asked)
        self.way: Way | None = next((way for way in get_args(Way) if way == known), None)

    def keep(self, way: Way | None) -> None:
        """Keep one that gained most now."""
        if way is not None and way != self.way:
            self._memory.table.keep_answer(self._memory.key, self._asked, way)


def _in_a_way(name: Way, written: Callable[[], Trial | None], solve: Solve) -> Found | None:
    """What optimizing a model comes to that is written in a way, which says so; None where none is."""
    other = written()
    if other is None:
        return None
    number = len(list(other.folder.iterdir()))
    told, tried = branches.attempted(other, solve, attempted)
    if not tried.accepted:
        return told if told.way is None else replace(told, way=None), tried
    tried.reason += _SAID[name]
    if tried.candidate is not None:  # the next is written there
        tried.candidate = tried.candidate.replace(other.folder / f"{name}-{number}.onnx")
    return replace(told, way=name), tried


def _is_enough(trial: Trial, tried: Attempt, name: Way, told: Way | None) -> bool:
    """Whether a way need not be tried any more, after what came to this."""
    share = trial.left / trial.limit
    if tried.accepted:
        return tried.interrupted or told is not None or share < LEAST_LEFT
    return tried.interrupted or share < (LEAST_AGAIN if name == "rows" else LEAST_AT_ALL)


def _best(found: Mapping[Way, Found]) -> Found:
    """That which gains most, the first of equals."""
    return max(found.values(), key=lambda one: _gain(one[1]))


def _gain(tried: Attempt) -> float:
    """How many times less a candidate was measured to take, where it is the answer."""
    if not tried.accepted:
        return 0.0
    if tried.weighed is not None:
        return tried.weighed.original / max(tried.weighed.candidate, 1)
    return tried.pairs[0][1].ratio if tried.pairs else 1.0


def _or_warned(of: str, attempt: Callable[[], T | None]) -> tuple[T | None, str]:
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
