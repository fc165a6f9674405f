"""What to leave out of a candidate whose gain was not confirmed: pieces that gain nothing in the whole model.

A piece was timed by itself, with what stands next to it; what it does to the rest shows in the whole model alone.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from superopt.errors import OutOfTime, RuntimeFailed, SuperoptError
from superopt.onnx_io import gone_after
from superopt.search.accepting.anew import as_it_stands, measured_briefly, placed
from superopt.search.accepting.judge import together, written
from superopt.search.accepting.judgement import question
from superopt.search.accepting.trial import Attempt, Trial
from superopt.search.paired import LEAST_GAIN
from superopt.search.solving.remembered import Memory
from superopt.search.strategies.found import Solved

MOST_ALONE = 8
"""So many pieces are measured, of those that should save most."""


_GAINS = TypeAdapter(list[float])


def surest(tried: Attempt, trial: Trial, end: float, memory: Memory | None = None) -> list[Solved] | None:
    """The places of a candidate, without what gained nothing when it was replaced alone; None where there is no such
    piece, or what is left gains too little. Measuring ends at a time of `time.monotonic`; what it says of this very
    candidate is remembered.
    """
    winners = sorted((s for s in tried.cover if s.gain > 1.0), key=lambda s: -s.saved * len(s.places))[:MOST_ALONE]
    if len(winners) < 2 or tried.candidate is None:
        return None
    asked = _asked(memory, trial, tried.candidate, winners) if memory else ""
    known = _recalled(memory, asked) if memory else []
    gains = [*known, *_alone(winners[len(known) :], trial, end)]
    if memory and len(gains) > len(known):
        memory.table.keep_answer(memory.key, asked, _GAINS.dump_json(gains).decode())
    return without_vain(tried.cover, winners, gains)


def _asked(memory: Memory, trial: Trial, candidate: Path, winners: Sequence[Solved]) -> str:
    """What these pieces gain is known by, in this order, of this candidate and by whoever allows as much time."""
    where = [[(place.steps.start, place.steps.stop) for place in s.places] for s in winners]
    models = trial.working, candidate
    return question(memory, models, "alone", where, trial.settings[0], trial.sample, trial.limit).asked


def _recalled(memory: Memory, asked: str) -> list[float]:
    """What those gained that were measured before, the first of the winners."""
    try:
        return _GAINS.validate_json(memory.table.answer(memory.key, asked) or "[]")
    except ValidationError:  # of another version, or damaged
        return []


def without_vain(cover: Sequence[Solved], winners: Sequence[Solved], gains: Sequence[float]) -> list[Solved] | None:
    """A cover whose winners, alone in the whole model, gain so much, the first of them: those that gain nothing are as
    they stand. None where there are none, or the others gain too little.
    """
    vain = {id(s) for s, gain in zip(winners, gains, strict=False) if gain <= 1.0}
    if not vain or math.prod(gain for gain in gains if gain > 1.0) < LEAST_GAIN:
        return None
    return [as_it_stands(s) if id(s) in vain else s for s in cover]


def _alone(winners: Sequence[Solved], trial: Trial, end: float) -> list[float]:
    """How many times faster the whole model is with each replaced, of as many as the time allows."""
    gains, path = list[float](), trial.folder / "alone.onnx"
    for i, solved in enumerate(winners):
        left = (end - time.monotonic()) / (len(winners) - i)
        if left <= 0.0:
            break
        trial.progress("measure pieces", i / len(winners))
        try:
            with gone_after(path):
                written(trial.program, together(trial.program, placed(trial.program, [solved])), path)
                trial.program.release_weights()
                gains.append(measured_briefly(trial.working, path, trial, left).ratio)
        except (OutOfTime, RuntimeFailed):
            break
        except SuperoptError:  # by itself it cannot be written
            gains.append(1.0)
    return gains
